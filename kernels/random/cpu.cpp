/*
 * Uniforms, indices and shuffled positions.                             rules: NUM-15 .. NUM-18
 *
 * A value depends on its index only, so any thread may make any piece.
 */
#include "random/cpu.h"

#include <algorithm>

#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 12;

struct Words { uint32_t word[4]; };

Words philox(Words c, PhiloxKey key) {
  uint32_t k0 = key.words[0], k1 = key.words[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(0xd2511f53u) * c.word[0];
    const uint64_t p1 = static_cast<uint64_t>(0xcd9e8d57u) * c.word[2];
    c = {{static_cast<uint32_t>(p1 >> 32) ^ c.word[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c.word[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c;
}

Words block_words(uint64_t block, PhiloxKey key, uint32_t stream, uint32_t shard) {
  return philox({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream, shard}}, key);
}

/* NUM-18: one pass of the Feistel network over 2 * half bits. */
uint64_t permuted_once(uint64_t position, int half, PhiloxKey key, uint64_t epoch) {
  const uint64_t mask = (1ull << half) - 1;
  uint64_t left = position >> half, right = position & mask;
  for (uint32_t round = 0; round < 6; ++round) {
    const Words words = philox({{static_cast<uint32_t>(right), round, static_cast<uint32_t>(epoch),
                                 static_cast<uint32_t>(epoch >> 32)}}, key);
    const uint64_t mixed = left ^ (words.word[0] & mask);
    left = right;
    right = mixed;
  }
  return left << half | right;
}

}  // namespace

void philox_uniform(float* out, int64_t n, PhiloxKey key, uint32_t stream, uint32_t shard) {
  const LayoutPath& path = current_path().layout;
  const uint32_t fixed[2] = {stream, shard};
  const int64_t whole = n / 4;
  parallel_for(whole, PIECE, [&](int64_t begin, int64_t end) {
    path.uniform(out + 4 * begin, static_cast<uint64_t>(begin), end - begin, key.words, fixed);
  });
  if (n % 4) {
    float last[4];
    path.uniform(last, static_cast<uint64_t>(whole), 1, key.words, fixed);
    std::copy(last, last + n % 4, out + 4 * whole);
  }
}

void philox_index(int64_t* out, int64_t n, PhiloxKey key, uint64_t bound, uint32_t stream, uint32_t shard) {
  parallel_for(n, PIECE, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Words words = block_words(static_cast<uint64_t>(i) / 2, key, stream, shard);
      const uint32_t* pair = words.word + 2 * (i % 2);
      const uint64_t x = static_cast<uint64_t>(pair[1]) << 32 | pair[0];
      out[i] = static_cast<int64_t>(static_cast<unsigned __int128>(x) * bound >> 64);
    }
  });
}

void shuffled_index(int64_t* out, int64_t n, PhiloxKey key, uint64_t bound, unsigned __int128 first) {
  int half = 1;
  while (half < 32 && (1ull << (2 * half)) < bound) ++half;
  parallel_for(n, PIECE, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const unsigned __int128 position = first + static_cast<uint64_t>(i);
      const uint64_t epoch = static_cast<uint64_t>(position / bound);
      uint64_t image = static_cast<uint64_t>(position % bound);
      do {
        image = permuted_once(image, half, key, epoch);
      } while (image >= bound);
      out[i] = static_cast<int64_t>(image);
    }
  });
}

}  // namespace identic

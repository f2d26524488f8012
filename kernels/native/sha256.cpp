#include "native/sha256.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "common/sha256.h"
#include "native/pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace identic {
namespace {

constexpr int64_t BLOCK = 64;
constexpr int64_t PIECE_BYTES = 1 << 15;
constexpr int64_t AHEAD = 1 << 13;  /* bytes from a block to one that comes near meanwhile: two chunks on, in the next pair */

alignas(64) constexpr uint32_t ROUND[64] = IDN_SHA_ROUNDS;

constexpr uint32_t INITIAL[8] = IDN_SHA_INITIAL;

struct State { uint32_t word[8]; };

/* ---- compression: STREAMS states, each over `blocks` blocks at its own address ------------------ */

uint32_t rotated(uint32_t x, int by) { return x >> by | x << (32 - by); }

void compress_portable(State& state, const uint8_t* data, int64_t blocks) {
  for (; blocks > 0; --blocks, data += BLOCK) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      w[i] = static_cast<uint32_t>(data[4 * i]) << 24 | static_cast<uint32_t>(data[4 * i + 1]) << 16 |
             static_cast<uint32_t>(data[4 * i + 2]) << 8 | data[4 * i + 3];
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t s0 = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
      const uint32_t s1 = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    memcpy(v, state.word, sizeof v);
    for (int i = 0; i < 64; ++i) {
      const uint32_t s1 = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
      const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + ROUND[i] + w[i];
      const uint32_t s0 = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
      const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; --j) v[j] = v[j - 1];
      v[4] += t1;
      v[0] = t1 + t2;
    }
    for (int j = 0; j < 8; ++j) state.word[j] += v[j];
  }
}

#if defined(__x86_64__)
#define IDN_SHA_TARGET __attribute__((target("sha,sse4.1,ssse3")))

/* A state in the two registers of the SHA instructions: (a, b, e, f) and (c, d, g, h), high to low. */
struct Packed { __m128i abef, cdgh; };

IDN_SHA_TARGET Packed packed(const State& state) {
  const uint32_t* w = state.word;
  return {_mm_set_epi32(static_cast<int>(w[0]), static_cast<int>(w[1]), static_cast<int>(w[4]), static_cast<int>(w[5])),
          _mm_set_epi32(static_cast<int>(w[2]), static_cast<int>(w[3]), static_cast<int>(w[6]), static_cast<int>(w[7]))};
}

IDN_SHA_TARGET State unpacked(Packed p) {
  uint32_t x[4], y[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(x), p.abef);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), p.cdgh);
  return {{x[3], x[2], y[3], y[2], x[1], x[0], y[1], y[0]}};
}

template <int STREAMS>
IDN_SHA_TARGET void compress_sha(State* states, const uint8_t* const* data, int64_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  Packed now[STREAMS];
  for (int s = 0; s < STREAMS; ++s) now[s] = packed(states[s]);
  for (int64_t block = 0; block < blocks; ++block) {
    Packed before[STREAMS];
    __m128i w[STREAMS][4];
    for (int s = 0; s < STREAMS; ++s) {
      before[s] = now[s];
      __builtin_prefetch(data[s] + block * BLOCK + AHEAD);
      for (int i = 0; i < 4; ++i) {
        const __m128i* at = reinterpret_cast<const __m128i*>(data[s] + block * BLOCK + 16 * i);
        w[s][i] = _mm_shuffle_epi8(_mm_loadu_si128(at), swap);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(ROUND + 4 * i));
#pragma GCC unroll 4
      for (int s = 0; s < STREAMS; ++s) {
        __m128i* v = w[s];
        __m128i sum = _mm_add_epi32(v[i & 3], constants);
        now[s].cdgh = _mm_sha256rnds2_epu32(now[s].cdgh, now[s].abef, sum);
        sum = _mm_shuffle_epi32(sum, 0x0e);
        now[s].abef = _mm_sha256rnds2_epu32(now[s].abef, now[s].cdgh, sum);
        if (i < 12) {
          const __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(v[i & 3], v[(i + 1) & 3]),
                                             _mm_alignr_epi8(v[(i + 3) & 3], v[(i + 2) & 3], 4));
          v[i & 3] = _mm_sha256msg2_epu32(next, v[(i + 3) & 3]);
        }
      }
    }
    for (int s = 0; s < STREAMS; ++s) {
      now[s].abef = _mm_add_epi32(now[s].abef, before[s].abef);
      now[s].cdgh = _mm_add_epi32(now[s].cdgh, before[s].cdgh);
    }
  }
  for (int s = 0; s < STREAMS; ++s) states[s] = unpacked(now[s]);
}
#endif

std::atomic<bool> wanted{true};

template <int STREAMS>
void compress(State* states, const uint8_t* const* data, int64_t blocks) {
  if (blocks == 0) return;
#if defined(__x86_64__)
  if (has_sha_instructions()) return compress_sha<STREAMS>(states, data, blocks);
#endif
  for (int s = 0; s < STREAMS; ++s) compress_portable(states[s], data[s], blocks);
}

/* ---- messages --------------------------------------------------------------------------------------- */

/* STREAMS messages prefix || data[s], all with `size` bytes after the prefix. */
template <int STREAMS>
void hash_messages(uint8_t* digests, const uint8_t* const* data, int64_t size, Prefix prefix) {
  State states[STREAMS];
  const uint8_t* at[STREAMS];
  uint8_t edge[STREAMS][2 * BLOCK];
  for (int s = 0; s < STREAMS; ++s) memcpy(states[s].word, INITIAL, sizeof INITIAL);
  const int64_t total = prefix.size + size;
  int64_t done = 0; /* bytes of the whole message compressed so far; the data lie prefix.size before them */
  if (prefix.size && total >= BLOCK) {
    for (int s = 0; s < STREAMS; ++s) {
      memcpy(edge[s], prefix.data, static_cast<size_t>(prefix.size));
      memcpy(edge[s] + prefix.size, data[s], static_cast<size_t>(BLOCK - prefix.size));
      at[s] = edge[s];
    }
    compress<STREAMS>(states, at, 1);
    done = BLOCK;
  }
  if (total - done >= BLOCK) {
    for (int s = 0; s < STREAMS; ++s) at[s] = data[s] + (done - prefix.size);
    const int64_t blocks = (total - done) / BLOCK;
    compress<STREAMS>(states, at, blocks);
    done += blocks * BLOCK;
  }
  const int64_t rest = total - done;
  const int64_t ending = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
  for (int s = 0; s < STREAMS; ++s) {
    memset(edge[s], 0, static_cast<size_t>(ending));
    const int64_t first = done == 0 ? prefix.size : 0; /* prefix bytes that belong to the ending */
    if (first) memcpy(edge[s], prefix.data, static_cast<size_t>(first));
    if (rest > first) memcpy(edge[s] + first, data[s] + (size - (rest - first)), static_cast<size_t>(rest - first));
    edge[s][rest] = 0x80;
    const uint64_t bits = static_cast<uint64_t>(total) * 8;
    for (int i = 0; i < 8; ++i) edge[s][ending - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
    at[s] = edge[s];
  }
  compress<STREAMS>(states, at, ending / BLOCK);
  for (int s = 0; s < STREAMS; ++s) {
    for (int i = 0; i < 8; ++i) {
      for (int b = 0; b < 4; ++b) {
        digests[DIGEST_BYTES * s + 4 * i + b] = static_cast<uint8_t>(states[s].word[i] >> (24 - 8 * b));
      }
    }
  }
}

/* Messages [begin, end) of equal size, `step` apart in the data. */
void hash_range(uint8_t* digests, const uint8_t* data, int64_t step, int64_t size, Prefix prefix, int64_t begin,
                int64_t end) {
  int64_t i = begin;
  for (; i + 2 <= end; i += 2) {
    const uint8_t* pair[2] = {data + i * step, data + (i + 1) * step};
    hash_messages<2>(digests + i * DIGEST_BYTES, pair, size, prefix);
  }
  if (i < end) {
    const uint8_t* one[1] = {data + i * step};
    hash_messages<1>(digests + i * DIGEST_BYTES, one, size, prefix);
  }
}

int64_t grain_of(int64_t bytes) { return std::max<int64_t>(2, PIECE_BYTES / std::max<int64_t>(bytes, 1)); }

}  // namespace

bool has_sha_instructions() {
#if defined(__x86_64__)
  static const bool supported = [] {
    unsigned a, b = 0, c, d;
    asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    return (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
  }();
  return supported && wanted.load(std::memory_order_relaxed);
#else
  return false;
#endif
}

void use_sha_instructions(bool use) { wanted = use; }

void chunk_hashes(uint8_t* digests, const uint8_t* data, int64_t size, int64_t chunk_bytes, Prefix prefix) {
  const int64_t whole = size / chunk_bytes, rest = size % chunk_bytes;
  parallel_for(whole, grain_of(chunk_bytes), [&](int64_t begin, int64_t end) {
    hash_range(digests, data, chunk_bytes, chunk_bytes, prefix, begin, end);
  });
  if (rest) {
    hash_range(digests + whole * DIGEST_BYTES, data + whole * chunk_bytes, 0, rest, prefix, 0, 1);
  }
}

void tree_root(uint8_t* root, const uint8_t* digests, int64_t count, Prefix prefix) {
  std::vector<uint8_t> level(digests, digests + count * DIGEST_BYTES), next;
  while (count > 1) {
    const int64_t pairs = count / 2;
    next.resize(static_cast<size_t>((pairs + count % 2) * DIGEST_BYTES));
    parallel_for(pairs, grain_of(2 * BLOCK), [&](int64_t begin, int64_t end) {
      hash_range(next.data(), level.data(), 2 * DIGEST_BYTES, 2 * DIGEST_BYTES, prefix, begin, end);
    });
    if (count % 2) memcpy(next.data() + pairs * DIGEST_BYTES, level.data() + (count - 1) * DIGEST_BYTES, DIGEST_BYTES);
    level.swap(next);
    count = pairs + count % 2;
  }
  memcpy(root, level.data(), DIGEST_BYTES);
}

}  // namespace identic

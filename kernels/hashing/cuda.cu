/*
 * SHA-256 of the 4,096-byte chunks of many arrays, and of the trees above them      rules: COM-2, COM-3
 *
 * A leaf is H(00 || chunk), an inner node H(01 || left || right). Both messages are a byte and then words that lie
 * in memory, so a word of the message is the last byte of the word before and three bytes of its own. What follows
 * the bytes is taken for part of them: 80, then zeros; the last word of the last block is the length in bits.
 *
 * Shapes  digests (chunks, 8) words, in the order of memory; table (arrays, 3): address, bytes, number of the first
 *         chunk; trees (arrays, 3): first node, nodes, first result.
 * Launch  hash_chunks: a thread owns a chunk; a warp fetches the next 64 bytes of its 32 chunks together.
 *         hash_trees: a block owns up to FAN neighbours of one array, a subtree, and leaves their root.
 * Twins   protocol/hashing.py (definition), native/sha256.cpp.
 */
#include "common/cuda.h"
#include "common/sha256.h"

#define CHUNK 4096
#define BLOCK_BYTES 64
#define THREADS 128
#define WARPS (THREADS / 32)
#define PITCH 17  /* words from one chunk's in shared memory to the next one's, so that banks differ */
#define FAN 512   /* a power of two, at most twice the threads of a block */

__constant__ uint32_t IDN_SHA_ROUND[64] = IDN_SHA_ROUNDS;

/* ---- compression ------------------------------------------------------------------------------ */

struct ShaState { uint32_t word[8]; };

IDN_INLINE ShaState idn_sha_start() {
  return {IDN_SHA_INITIAL};
}

IDN_INLINE uint32_t idn_rotated(uint32_t x, int by) { return __funnelshift_r(x, x, by); }

/* The state after one block; w is used up. */
IDN_INLINE void idn_sha_block(ShaState& state, uint32_t (&w)[16]) {
  uint32_t a = state.word[0], b = state.word[1], c = state.word[2], d = state.word[3];
  uint32_t e = state.word[4], f = state.word[5], g = state.word[6], h = state.word[7];
  IDN_ROLLED
  for (int first = 0; first < 64; first += 16) {
    IDN_UNROLL(16)
    for (int i = 0; i < 16; ++i) {
      const uint32_t s1 = idn_rotated(e, 6) ^ idn_rotated(e, 11) ^ idn_rotated(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + IDN_SHA_ROUND[first + i] + w[i];
      const uint32_t s0 = idn_rotated(a, 2) ^ idn_rotated(a, 13) ^ idn_rotated(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    if (first == 48) break;
    IDN_UNROLL(16)
    for (int i = 0; i < 16; ++i) {
      const uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
      w[i] += (idn_rotated(x, 7) ^ idn_rotated(x, 18) ^ x >> 3) + w[(i + 9) & 15] +
              (idn_rotated(y, 17) ^ idn_rotated(y, 19) ^ y >> 10);
    }
  }
  const uint32_t v[8] = {a, b, c, d, e, f, g, h};
  IDN_UNROLL(8)
  for (int i = 0; i < 8; ++i) state.word[i] += v[i];
}

/* A word of the message from a word of memory and the one before it. */
IDN_INLINE uint32_t idn_shifted(uint32_t word, uint32_t before) { return __byte_perm(word, before, 0x7012); }

/* A word of the state as its bytes lie in memory. */
IDN_INLINE uint32_t idn_swapped(uint32_t word) { return __byte_perm(word, 0, 0x0123); }

/* ---- leaves ----------------------------------------------------------------------------------- */

/* Four bytes from `at` on of `length` bytes and what is taken to follow them. */
IDN_INLINE uint32_t idn_padded_word(const unsigned char* bytes, int at, int length) {
  const unsigned char* from = bytes + at;
  if (at + 4 <= length && (unsigned long long)from % 4 == 0) return *(const uint32_t*)from;
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t one = at + i < length ? from[i] : at + i == length ? 0x80u : 0u;
    word |= one << (8 * i);
  }
  return word;
}

/* The array that chunk number c belongs to: the last whose first chunk is not after it. */
IDN_INLINE long long idn_array_of(const long long* __restrict__ table, long long arrays, long long c) {
  long long low = 0, high = arrays;
  while (high - low > 1) {
    const long long middle = (low + high) / 2;
    if (table[3 * middle + 2] <= c) low = middle; else high = middle;
  }
  return low;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    hash_chunks(uint32_t* __restrict__ digests, const long long* __restrict__ table, long long arrays,
                long long chunks) {
  __shared__ uint32_t fetched[WARPS][32][PITCH];
  __shared__ const unsigned char* starts[WARPS][32];
  __shared__ int lengths[WARPS][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long c = idn_thread();
  const unsigned char* start = nullptr;
  int length = -1, blocks = 0;
  if (c < chunks) {
    const long long array = idn_array_of(table, arrays, c);
    const long long first = (c - table[3 * array + 2]) * CHUNK, left = table[3 * array + 1] - first;
    start = (const unsigned char*)table[3 * array] + first;
    length = left < CHUNK ? (int)left : CHUNK;
    blocks = (length + 1 + 9 + BLOCK_BYTES - 1) / BLOCK_BYTES;
  }
  starts[warp][lane] = start;
  lengths[warp][lane] = length;
  __syncwarp();
  const unsigned char* together = starts[warp][0];
  const bool follows = start == together + lane * CHUNK && length == CHUNK;
  const bool whole = __all_sync(0xffffffffu, follows) && (unsigned long long)together % 16 == 0;
  int most = blocks;
  for (int by = 16; by > 0; by /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, by));

  ShaState state = idn_sha_start();
  uint32_t before = 0; /* the prefix 00 is its last byte */
  for (int block = 0; block < most; ++block) {
    const int at = block * BLOCK_BYTES;
    if (whole && at < CHUNK) {
      for (int i = lane; i < 128; i += 32) {
        const uint4 four = *(const uint4*)(together + i / 4 * CHUNK + at + i % 4 * 16);
        uint32_t* to = &fetched[warp][i / 4][i % 4 * 4];
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
      }
    } else {
      for (int i = lane; i < 512; i += 32) {
        const int long_ = lengths[warp][i / 16];
        const int from = at + i % 16 * 4;
        fetched[warp][i / 16][i % 16] = from <= long_ ? idn_padded_word(starts[warp][i / 16], from, long_) : 0;
      }
    }
    __syncwarp();
    if (block < blocks) {
      uint32_t w[16];
      IDN_UNROLL(16)
      for (int i = 0; i < 16; ++i) {
        const uint32_t word = fetched[warp][lane][i];
        w[i] = idn_shifted(word, before);
        before = word;
      }
      if (block == blocks - 1) w[15] = (uint32_t)(length + 1) * 8;
      idn_sha_block(state, w);
    }
    __syncwarp();
  }
  if (c < chunks) {
    IDN_UNROLL(8)
    for (int i = 0; i < 8; ++i) digests[8 * c + i] = idn_swapped(state.word[i]);
  }
}

/* ---- inner nodes ------------------------------------------------------------------------------ */

IDN_INLINE ShaState idn_node_hash(const uint32_t* children) {
  ShaState state = idn_sha_start();
  uint32_t before = 0x01000000u; /* the prefix 01 is its last byte */
  for (int block = 0; block < 2; ++block) {
    uint32_t w[16];
    IDN_UNROLL(16)
    for (int i = 0; i < 16; ++i) {
      const uint32_t word = block == 0 ? children[i] : i == 0 ? 0x80u : 0u;
      w[i] = idn_shifted(word, before);
      before = word;
    }
    if (block == 1) w[15] = 65 * 8;
    idn_sha_block(state, w);
  }
  return state;
}

/* COM-2: neighbours are hashed level by level; an odd last one moves up as it is. */
extern "C" __global__ void __launch_bounds__(FAN / 2)
    hash_trees(uint32_t* __restrict__ roots, const uint32_t* __restrict__ nodes, const long long* __restrict__ trees,
               long long arrays) {
  __shared__ uint32_t level[FAN * 8];
  const long long array = idn_array_of(trees, arrays, blockIdx.x);
  const long long group = (blockIdx.x - trees[3 * array + 2]) * FAN, left = trees[3 * array + 1] - group;
  int count = left < FAN ? (int)left : FAN;
  const uint32_t* from = nodes + (trees[3 * array] + group) * 8;
  for (int i = threadIdx.x; i < 8 * count; i += FAN / 2) level[i] = from[i];
  __syncthreads();
  while (count > 1) {
    const int mine = threadIdx.x, pairs = count / 2, odd = count % 2;
    ShaState up = {};
    if (mine < pairs) {
      up = idn_node_hash(&level[16 * mine]);
      IDN_UNROLL(8)
      for (int i = 0; i < 8; ++i) up.word[i] = idn_swapped(up.word[i]);
    } else if (mine < pairs + odd) {
      IDN_UNROLL(8)
      for (int i = 0; i < 8; ++i) up.word[i] = level[16 * mine + i];
    }
    __syncthreads();
    if (mine < pairs + odd) {
      IDN_UNROLL(8)
      for (int i = 0; i < 8; ++i) level[8 * mine + i] = up.word[i];
    }
    __syncthreads();
    count = pairs + odd;
  }
  if (threadIdx.x < 8) roots[8ll * blockIdx.x + threadIdx.x] = level[threadIdx.x];
}

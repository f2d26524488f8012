/*
 * philox_uniform, philox_index, shuffled_index                          rules: NUM-15 .. NUM-18
 *
 * Order   None: a value depends on its index only.
 * Shapes  out (n,), float32 or int64.
 * Launch  Any one-dimensional launch. A thread owns four uniforms, two indices or one position at a
 *         time, what one block of the generator gives, and strides on by the whole launch.
 * Twins   reference.py (definition), cpu.cpp, cpu_philox.h.
 */
#include "common/cuda.h"

/* ---- generator ----------------------------------------------------------------------------- */

struct PhiloxBlock { uint32_t word[4]; };

/* NUM-15: ten rounds; the key is two words, the counter four. */
IDN_INLINE PhiloxBlock idn_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
  IDN_UNROLL(10)
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xd2511f53u * c0;
    const uint64_t p1 = (uint64_t)0xcd9e8d57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

/* NUM-17: the counter of a block. */
IDN_INLINE PhiloxBlock idn_philox_block(uint64_t block, uint32_t stream, uint32_t shard, uint32_t k0, uint32_t k1) {
  return idn_philox((uint32_t)block, (uint32_t)(block >> 32), stream, shard, k0, k1);
}

/* NUM-16: the top 24 bits as a fraction; the number and the product are exact. */
IDN_INLINE float idn_uniform24(uint32_t word) { return idn_mul((float)(word >> 8), 0x1p-24f); }

/* NUM-18: one pass of the Feistel network over 2 * half bits. */
IDN_INLINE uint64_t idn_permute_once(uint64_t position, int half, uint32_t k0, uint32_t k1, uint64_t epoch) {
  const uint64_t mask = (1ull << half) - 1;
  uint64_t left = position >> half, right = position & mask;
  for (uint32_t round = 0; round < 6; ++round) {
    const PhiloxBlock mixed =
        idn_philox((uint32_t)right, round, (uint32_t)epoch, (uint32_t)(epoch >> 32), k0, k1);
    const uint64_t next = left ^ (mixed.word[0] & mask);
    left = right;
    right = next;
  }
  return left << half | right;
}

/* ---- entry points -------------------------------------------------------------------------- */

extern "C" __global__ void philox_uniform(float* __restrict__ out, long long n, long long key0, long long key1,
                                          long long stream, long long shard) {
  const bool even = (unsigned long long)out % 16 == 0;
  for (long long block = idn_thread(); 4 * block < n; block += idn_threads()) {
    const PhiloxBlock made =
        idn_philox_block((uint64_t)block, (uint32_t)stream, (uint32_t)shard, (uint32_t)key0, (uint32_t)key1);
    float value[4];
    IDN_UNROLL(4)
    for (int i = 0; i < 4; ++i) value[i] = idn_uniform24(made.word[i]);
    if (even && 4 * block + 4 <= n) {
      *(float4*)(out + 4 * block) = make_float4(value[0], value[1], value[2], value[3]);
      continue;
    }
    IDN_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      if (4 * block + i < n) out[4 * block + i] = value[i];
    }
  }
}

extern "C" __global__ void philox_index(long long* __restrict__ out, long long n, long long key0, long long key1,
                                        long long bound, long long stream, long long shard) {
  for (long long block = idn_thread(); 2 * block < n; block += idn_threads()) {
    const PhiloxBlock made =
        idn_philox_block((uint64_t)block, (uint32_t)stream, (uint32_t)shard, (uint32_t)key0, (uint32_t)key1);
    IDN_UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      const unsigned long long x = (unsigned long long)made.word[2 * i + 1] << 32 | made.word[2 * i];
      if (2 * block + i < n) out[2 * block + i] = (long long)__umul64hi(x, (unsigned long long)bound);
    }
  }
}

/*
 * The position of element i is epoch * bound + first + i with 0 <= first < bound, so the sum in the
 * remainder needs no more than 64 bits.
 */
extern "C" __global__ void shuffled_index(long long* __restrict__ out, long long n, long long key0, long long key1,
                                          long long bound, long long half, long long epoch, long long first) {
  for (long long i = idn_thread(); i < n; i += idn_threads()) {
    const uint64_t position = (uint64_t)first + (uint64_t)i;
    const uint64_t pass = (uint64_t)epoch + position / (uint64_t)bound;
    uint64_t image = position % (uint64_t)bound;
    do {
      image = idn_permute_once(image, (int)half, (uint32_t)key0, (uint32_t)key1, pass);
    } while (image >= (uint64_t)bound);
    out[i] = (long long)image;
  }
}

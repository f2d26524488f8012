/* Random numbers on the CPU: entry points for native/module.cpp. */
#ifndef IDENTIC_RANDOM_CPU_H
#define IDENTIC_RANDOM_CPU_H

#include <cstdint>

namespace identic {

struct PhiloxKey { uint32_t words[2]; };

/* n uniforms in [0, 1) of a stream and a shard (NUM-16, NUM-17). */
void philox_uniform(float* out, int64_t n, PhiloxKey key, uint32_t stream, uint32_t shard);

/* n indices below bound, 1 <= bound < 2^63 (NUM-16, NUM-17). */
void philox_index(int64_t* out, int64_t n, PhiloxKey key, uint64_t bound, uint32_t stream, uint32_t shard);

/* out[i] = image of position (first + i) mod bound under the permutation of epoch (first + i) div bound (NUM-18). */
void shuffled_index(int64_t* out, int64_t n, PhiloxKey key, uint64_t bound, unsigned __int128 first);

}  // namespace identic

#endif

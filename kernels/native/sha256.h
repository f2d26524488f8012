/*
 * SHA-256 of many messages at once: prefix || chunk for each chunk of a buffer, and trees over them.
 *                                                                                      rules: COM-2
 * With the SHA instructions of x86 two messages are hashed side by side, which hides their latency;
 * elsewhere a portable implementation gives the same digests. Threads share the messages.
 */
#ifndef IDENTIC_NATIVE_SHA256_H
#define IDENTIC_NATIVE_SHA256_H

#include <cstdint>
#include <vector>

namespace identic {

constexpr int64_t DIGEST_BYTES = 32;
constexpr int64_t LONGEST_PREFIX = 63;

struct Prefix {
  const uint8_t* data;
  int64_t size;  /* at most LONGEST_PREFIX */
};

/* digests[i] = SHA-256(prefix || chunk i); the last chunk may be shorter. No chunk for no data. */
void chunk_hashes(uint8_t* digests, const uint8_t* data, int64_t size, int64_t chunk_bytes, Prefix prefix);

/* Root of count >= 1 digests: neighbours are hashed as prefix || left || right, an odd last one moves up. */
void tree_root(uint8_t* root, const uint8_t* digests, int64_t count, Prefix prefix);

/* Whether the SHA instructions are used. */
bool has_sha_instructions();

/* For tests: with false the portable implementation is used everywhere. */
void use_sha_instructions(bool use);

}  // namespace identic

#endif

/* Python functions: chunk_hashes, tree_root. */
#include "native/arrays.h"
#include "native/sha256.h"

namespace identic {
namespace {

Prefix prefix_of(const nb::bytes& prefix) {
  if (static_cast<int64_t>(prefix.size()) > LONGEST_PREFIX) throw nb::value_error("the prefix has more than 63 bytes");
  return {static_cast<const uint8_t*>(prefix.data()), static_cast<int64_t>(prefix.size())};
}

nb::bytes chunk_hashes_(nb::handle data_, int64_t chunk_bytes, const nb::bytes& prefix_) {
  const Input data(data_, "data");
  data.contiguous();
  if (chunk_bytes < 1) throw nb::value_error("chunks have at least one byte");
  const Prefix prefix = prefix_of(prefix_);
  const int64_t size = data.size() * data.bytes();
  std::vector<uint8_t> digests(static_cast<size_t>((size / chunk_bytes + (size % chunk_bytes != 0)) * DIGEST_BYTES));
  {
    nb::gil_scoped_release release;
    chunk_hashes(digests.data(), data.as<uint8_t>(), size, chunk_bytes, prefix);
  }
  return nb::bytes(digests.data(), digests.size());
}

nb::bytes tree_root_(nb::handle digests_, const nb::bytes& prefix_) {
  const Input digests(digests_, "digests");
  digests.contiguous();
  const Prefix prefix = prefix_of(prefix_);
  const int64_t size = digests.size() * digests.bytes();
  if (size == 0 || size % DIGEST_BYTES) throw nb::value_error("digests are one or more times 32 bytes");
  uint8_t root[DIGEST_BYTES];
  {
    nb::gil_scoped_release release;
    tree_root(root, digests.as<uint8_t>(), size / DIGEST_BYTES, prefix);
  }
  return nb::bytes(root, sizeof root);
}

}  // namespace

void bind_hashing(nb::module_& m) {
  m.def("chunk_hashes", chunk_hashes_, nb::arg("data"), nb::arg("chunk_bytes"), nb::arg("prefix"),
        "SHA-256(prefix || chunk) of each chunk of the buffer, 32 bytes each in order; the last chunk may be shorter.");
  m.def("tree_root", tree_root_, nb::arg("digests"), nb::arg("prefix"),
        "Root over n * 32 bytes of digests, n >= 1: SHA-256(prefix || left || right) of neighbours, level by level; an "
        "odd last one moves up unchanged.");
  m.def("has_sha_instructions", has_sha_instructions, "Whether the SHA instructions are used.");
  m.def("use_sha_instructions", use_sha_instructions, nb::arg("use"), "For tests: false uses the portable hash.");
}

}  // namespace identic

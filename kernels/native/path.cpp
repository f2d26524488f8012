#include "native/path.h"

#include <atomic>
#include <stdexcept>

namespace identic {
namespace {

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

/* Paths this machine can run, the preferred one first. */
std::vector<const Path*> usable_paths() {
  std::vector<const Path*> paths;
#if defined(__x86_64__) && defined(IDENTIC_SANITIZERS)
  if (has_avx2()) paths.push_back(&AVX2_PATH);
#elif defined(__x86_64__)
  if (has_avx512()) paths.push_back(&AVX512_PATH);
  if (has_avx2()) {
    paths.push_back(&AVX2_PATH);
    paths.push_back(&EMULATED_PATH);
  }
#elif defined(__aarch64__)
  paths.push_back(&NEON_PATH);
#endif
  paths.push_back(&SCALAR_PATH);
  return paths;
}

std::atomic<const Path*> chosen{nullptr};

}  // namespace

const Path& current_path() {
  const Path* path = chosen.load(std::memory_order_acquire);
  if (!path) {
    path = usable_paths().front();
    chosen.store(path, std::memory_order_release);
  }
  return *path;
}

std::vector<std::string> available_paths() {
  std::vector<std::string> names;
  for (const Path* path : usable_paths()) names.emplace_back(path->name);
  return names;
}

void set_path(const std::string& name) {
  for (const Path* path : usable_paths()) {
    if (name == "auto" || name == path->name) {
      chosen.store(path, std::memory_order_release);
      return;
    }
  }
  throw std::invalid_argument("path " + name + " is unknown or not available on this machine");
}

}  // namespace identic

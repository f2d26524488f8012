/*
 * The first process of the simulated machine: makes the recorded calls again, on the path of AVX-512 whatever
 * path they ask for, and says on the console how many answers are other bytes than those that were recorded.
 *
 * /calls is request, answer, request, answer ..., each with its length before it, in eight bytes.
 */
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include <termios.h>
#include <unistd.h>

#include "native/path.h"
#include "server.h"

namespace {

bool read_one(FILE* file, std::string& to) {
  uint64_t size;
  if (std::fread(&size, 1, sizeof size, file) != sizeof size) return false;
  to.resize(size);
  return std::fread(to.data(), 1, size, file) == size;
}

bool of_the_machine(const std::string& name) { return name == "paths" || name == "set_path" || name == "path"; }

void replay() {
  FILE* const file = std::fopen("/calls", "rb");
  if (!file) {
    std::printf("replay: no /calls\n");
    return;
  }
  begin();
  identic::set_path("avx512");
  int64_t calls = 0, wrong = 0;
  std::string request, answer;
  while (read_one(file, request) && read_one(file, answer)) {
    const std::string name = called(request);
    if (of_the_machine(name)) continue;
    if (calls++ % 500 == 0) std::printf("replay: at call %lld, %s\n", static_cast<long long>(calls - 1), name.c_str());
    if (answered(request) == answer) continue;
    if (wrong++ < 20) std::printf("replay: call %lld, of %s, has another answer\n", static_cast<long long>(calls - 1), name.c_str());
  }
  std::printf("replay: %s, %lld calls, %lld wrong\n", identic::current_path().name, static_cast<long long>(calls),
              static_cast<long long>(wrong));
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    replay();
  } catch (const std::exception& problem) {
    std::printf("replay: failed, %s\n", problem.what());
  }
  std::printf("replay: end\n");
  tcdrain(1);
  for (;;) pause();
}

/*
 * Answers requests on standard input and output; each message has its length before it, in eight bytes.
 */
#include <cstdint>
#include <cstdio>

#include "server.h"

int main() {
  begin();
  std::string message;
  for (;;) {
    uint64_t size; /* low byte first, as on the machines this runs on */
    if (std::fread(&size, 1, sizeof size, stdin) != sizeof size) return 0;
    message.resize(size);
    if (std::fread(message.data(), 1, size, stdin) != size) return 1;
    const std::string reply = answered(message);
    size = reply.size();
    std::fwrite(&size, 1, sizeof size, stdout);
    std::fwrite(reply.data(), 1, reply.size(), stdout);
    std::fflush(stdout);
  }
}

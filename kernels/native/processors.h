/*
 * Which processors a thread may use, where the system has a word for it; elsewhere nothing happens.
 */
#ifndef IDENTIC_NATIVE_PROCESSORS_H
#define IDENTIC_NATIVE_PROCESSORS_H

#include <atomic>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace identic {

/* A thread as others see it: its number, 0 before it runs, and the processor it was last seen on, or -1. */
struct Whereabouts {
  std::atomic<int> thread{0};
  std::atomic<int> processor{-1};
};

#if defined(__linux__)

/* The processor that the calling thread runs on; -1 where it cannot be told. */
inline int processor_here() { return sched_getcpu(); }

/* Notes down the calling thread. */
inline void note_thread(Whereabouts& self) { self.thread = static_cast<int>(syscall(SYS_gettid)); }

/*
 * Sends threads off the caller's processor when one of them was last seen there. They may then use what the caller may use but
 * its own processor, if that is one for each of them; otherwise they stay as they are.
 */
inline void keep_off(std::vector<Whereabouts>& threads) {
  const int here = processor_here();
  bool in_the_way = false;
  for (const Whereabouts& one : threads) in_the_way |= one.processor.load(std::memory_order_relaxed) == here;
  if (here < 0 || !in_the_way) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_CLR(static_cast<size_t>(here), &allowed);
  if (CPU_COUNT(&allowed) < static_cast<int>(threads.size())) return;
  for (Whereabouts& one : threads) {
    /* A refusal leaves a thread where it is, which is slower and no fault. Number 0 would be the caller. */
    const int thread = one.thread.load(std::memory_order_relaxed);
    if (thread != 0) sched_setaffinity(thread, sizeof allowed, &allowed);
    one.processor.store(-1, std::memory_order_relaxed);
  }
}

#else

inline int processor_here() { return -1; }
inline void note_thread(Whereabouts&) {}
inline void keep_off(std::vector<Whereabouts>&) {}

#endif

/* Notes down where the calling thread runs. */
inline void note_processor(Whereabouts& self) {
  const int here = processor_here();
  if (self.processor.load(std::memory_order_relaxed) != here) self.processor.store(here, std::memory_order_relaxed);
}

}  // namespace identic

#endif

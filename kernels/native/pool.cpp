#include "native/pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "native/processors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace identic {
namespace {

/* ---- control registers ---------------------------------------------------------------------- */

#if defined(__x86_64__)
constexpr unsigned DAZ = 1u << 6;
constexpr unsigned FTZ = 1u << 15;
constexpr unsigned DEFAULT_MXCSR = 0x1f80;

FloatEnvironment environment_of_this_thread() {
  static const char* const ROUNDINGS[4] = {"nearest", "down", "up", "zero"};
  const unsigned mxcsr = _mm_getcsr();
  return {(mxcsr & FTZ) != 0, (mxcsr & DAZ) != 0, ROUNDINGS[(mxcsr >> 13) & 3]};
}

void reset_this_thread() { _mm_setcsr(DEFAULT_MXCSR); }
#elif defined(__aarch64__)
constexpr uint64_t FZ_BITS = (1ull << 24) | (1ull << 19) | 3ull;  /* FZ, FZ16, FIZ and AH */

FloatEnvironment environment_of_this_thread() {
  static const char* const ROUNDINGS[4] = {"nearest", "up", "down", "zero"};
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return {(fpcr & (1ull << 24)) != 0, (fpcr & 1ull) != 0, ROUNDINGS[(fpcr >> 22) & 3]};
}

void reset_this_thread() {
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  fpcr &= ~(FZ_BITS | (3ull << 22));
  asm volatile("msr fpcr, %0" : : "r"(fpcr));
}
#else
FloatEnvironment environment_of_this_thread() { return {}; }
void reset_this_thread() {}
#endif

/* ---- the pool --------------------------------------------------------------------------------- */

constexpr uint64_t HUGE_PAGE = 1 << 21;  /* bytes of a page that large buffers ask for: fewer addresses to look up */

thread_local bool inside_piece = false;

using Clock = std::chrono::steady_clock;

/*
 * How long an idle thread looks for work before it sleeps. Work that follows work at once is worth more of a wait than a wake
 * costs; work that comes now and then is not.
 */
constexpr auto PATIENCE = std::chrono::microseconds(100);
constexpr auto SHORT_PATIENCE = std::chrono::microseconds(20);

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/*
 * Workers enter a range while it is open and the caller closes it when nothing of it is left to take. So a worker whom the system
 * wakes too late is not waited for.
 */
class Pool {
 public:
  explicit Pool(int workers) : whereabouts_(static_cast<size_t>(workers)) {
    for (Whereabouts& self : whereabouts_) threads_.emplace_back([this, &self] { work(self); });
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  int workers() const { return static_cast<int>(threads_.size()); }

  /* Runs pieces of [0, count) on all threads; with every_thread, piece i goes to thread i alone. */
  void run(int64_t count, int64_t step, bool every_thread, PieceFunction function, void* context) {
    function_ = function;
    context_ = context;
    count_ = count;
    step_ = step;
    every_thread_ = every_thread;
    error_ = nullptr;
    next_.store(every_thread ? 1 : 0, std::memory_order_relaxed);
    absent_.store(every_thread ? workers() : 0, std::memory_order_relaxed);
    /* A kernel may wake a thread where it last ran, behind the caller, and leave it there for milliseconds. */
    keep_off(whereabouts_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      state_.store(((state_.load(std::memory_order_relaxed) | OPEN) + NEXT_RANGE), std::memory_order_release);
    }
    wake_.notify_all();
    if (every_thread) {
      function(context, 0, 1);
    } else {
      take_pieces();
    }
    wait([this] { return absent_.load(std::memory_order_acquire) == 0; });
    state_.fetch_and(~OPEN, std::memory_order_acq_rel);
    wait([this] { return (state_.load(std::memory_order_acquire) & ENTERED) == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /* The state: how many workers are in, whether more may enter, and the number of the range. */
  static constexpr uint64_t ENTERED = 0xffff, OPEN = 1ull << 16, NEXT_RANGE = 1ull << 17;

  static bool offers(uint64_t state, uint64_t seen) { return (state & OPEN) && state / NEXT_RANGE != seen; }

  template <class Condition>
  void wait(Condition condition) {
    const auto limit = Clock::now() + PATIENCE;
    while (!condition()) {
      relax();
      if (Clock::now() > limit) {
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, condition);
      }
    }
  }

  void work(Whereabouts& self) {
    note_thread(self);
    reset_this_thread();
    uint64_t seen = 0;
    Clock::duration patience = PATIENCE;
    while (wait_for_range(self, seen, patience)) {
      uint64_t state = state_.load(std::memory_order_relaxed);
      do {
        if (!offers(state, seen)) break;
      } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
      if (!offers(state, seen)) continue;
      seen = state / NEXT_RANGE;
      if (every_thread_) {
        const int64_t mine = next_.fetch_add(1, std::memory_order_relaxed);
        guarded(mine, mine + 1);
        absent_.fetch_sub(1, std::memory_order_acq_rel);
      } else {
        take_pieces();
      }
      note_processor(self);
      const bool listens = every_thread_;
      if ((state_.fetch_sub(1, std::memory_order_acq_rel) & (ENTERED | OPEN)) == 1 || listens) {
        std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_one();
      }
    }
  }

  /*
   * Until there is a range that is not the one seen; false when the pool is given up. A worker that was woken too late for a
   * range looks for the next one anew: it would be late for that one too if it slept. It may have waited for the caller's
   * processor.
   */
  bool wait_for_range(Whereabouts& self, uint64_t& seen, Clock::duration& patience) {
    auto start = Clock::now();
    auto now = start;
    while (!offers(state_.load(std::memory_order_acquire), seen)) {
      relax();
      now = Clock::now();
      if (now - start <= patience) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || state_.load(std::memory_order_acquire) / NEXT_RANGE != seen; });
      if (stopping_) return false;
      now = Clock::now();
      const uint64_t state = state_.load(std::memory_order_acquire);
      if (offers(state, seen)) continue;
      note_processor(self);
      seen = state / NEXT_RANGE;
      start = now;
      patience = PATIENCE;
    }
    patience = now - start > PATIENCE ? SHORT_PATIENCE : PATIENCE;
    return true;
  }

  void take_pieces() {
    for (;;) {
      const int64_t begin = next_.fetch_add(step_, std::memory_order_relaxed);
      if (begin >= count_) return;
      guarded(begin, std::min(begin + step_, count_));
    }
  }

  void guarded(int64_t begin, int64_t end) {
    inside_piece = true;
    try {
      function_(context_, begin, end);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_.store(count_, std::memory_order_relaxed);
    }
    inside_piece = false;
  }

  std::vector<Whereabouts> whereabouts_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<uint64_t> state_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<int> absent_{0};
  bool stopping_ = false;
  bool every_thread_ = false;
  PieceFunction function_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0, step_ = 1;
  std::exception_ptr error_;
};

/* Owned by busy's holder. A forked child has none of the threads, so it forgets the pool. */
struct Shared {
  std::mutex busy;
  std::unique_ptr<Pool> pool;
  std::atomic<int> wanted{0};
};

Shared* shared_state = nullptr;
std::once_flag shared_once;

void forget_in_child() {
  Shared* fresh = new Shared;
  fresh->wanted = shared_state->wanted.load();
  shared_state = fresh;
  inside_piece = false;
}

Shared& shared() {
  std::call_once(shared_once, [] {
    shared_state = new Shared;
    pthread_atfork(nullptr, nullptr, forget_in_child);
  });
  return *shared_state;
}

/* The pool with the wanted number of threads. The caller holds busy. */
Pool& ready_pool(Shared& state) {
  const int workers = threads() - 1;
  if (!state.pool || state.pool->workers() != workers) {
    state.pool.reset();
    state.pool = std::make_unique<Pool>(workers);
  }
  return *state.pool;
}

}  // namespace

void set_threads(int count) { shared().wanted = std::clamp(count, 1, 1024); }

int threads() {
  const int wanted = shared().wanted.load(std::memory_order_relaxed);
  if (wanted > 0) return wanted;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 1024);
}

namespace {

/* Pieces of so many on all threads, or all on the caller when it is to work alone. */
void share(int64_t count, int64_t step, PieceFunction function, void* context) {
  Shared& state = shared();
  if (step >= count || inside_piece || threads() == 1 || !state.busy.try_lock()) {
    function(context, 0, count);
    return;
  }
  std::lock_guard<std::mutex> lock(state.busy, std::adopt_lock);
  ready_pool(state).run(count, step, false, function, context);
}

}  // namespace

void parallel_for_erased(int64_t count, int64_t grain, PieceFunction function, void* context) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t most = std::min<int64_t>(threads(), (count + grain - 1) / grain);
  /* Four pieces a thread even out unequal cores; grain keeps a piece worth the hand-over. */
  const int64_t pieces = most == 1 ? 1 : 4 * most;
  share(count, std::max(grain, (count + pieces - 1) / pieces), function, context);
}

void parallel_each_erased(int64_t count, PieceFunction function, void* context) {
  if (count > 0) share(count, 1, function, context);
}

FloatEnvironment float_environment() {
  FloatEnvironment worst = environment_of_this_thread();
  Shared& state = shared();
  std::lock_guard<std::mutex> lock(state.busy);
  if (threads() == 1) return worst;
  std::vector<FloatEnvironment> seen(static_cast<size_t>(threads()));
  ready_pool(state).run(
      threads(), 1, true,
      [](void* context, int64_t begin, int64_t) {
        (*static_cast<std::vector<FloatEnvironment>*>(context))[static_cast<size_t>(begin)] =
            environment_of_this_thread();
      },
      &seen);
  for (const auto& one : seen) {
    worst.flush_to_zero |= one.flush_to_zero;
    worst.denormals_are_zero |= one.denormals_are_zero;
    if (one.rounding != "nearest") worst.rounding = one.rounding;
  }
  return worst;
}

void reset_float_environment() {
  reset_this_thread();
  Shared& state = shared();
  std::lock_guard<std::mutex> lock(state.busy);
  if (threads() == 1) return;
  ready_pool(state).run(
      threads(), 1, true, [](void*, int64_t, int64_t) { reset_this_thread(); }, nullptr);
}

void* thread_buffer(int slot, uint64_t bytes) {
  struct Buffers {
    void* memory[8] = {};
    uint64_t size[8] = {};
    ~Buffers() {
      for (void* one : memory) std::free(one);
    }
  };
  thread_local Buffers buffers;
  if (buffers.size[slot] < bytes) {
    std::free(buffers.memory[slot]);
    buffers.size[slot] = 0;
    const uint64_t page = bytes >= HUGE_PAGE / 8 ? HUGE_PAGE : 4096;
    const uint64_t rounded = (bytes + page - 1) / page * page;
    buffers.memory[slot] = std::aligned_alloc(page, rounded);
    if (!buffers.memory[slot]) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    /* A refusal leaves small pages, which are slower and no fault. */
    if (page == HUGE_PAGE) madvise(buffers.memory[slot], rounded, MADV_HUGEPAGE);
#endif
    buffers.size[slot] = rounded;
  }
  return buffers.memory[slot];
}

}  // namespace identic

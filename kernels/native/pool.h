/*
 * The thread pool of the native kernels.
 *
 * One pool for the process, made on first use and made anew in a forked child. A kernel hands it a
 * range; idle threads take pieces of that range in no particular order. How a range is cut never
 * reaches the bits: every kernel computes each output element inside one piece, in the order its
 * rule states. A call made while another thread is using the pool, or from inside a piece, runs on
 * the calling thread alone.
 */
#ifndef IDENTIC_NATIVE_POOL_H
#define IDENTIC_NATIVE_POOL_H

#include <cstdint>
#include <string>
#include <type_traits>

namespace identic {

/* Sets how many threads work on a range, the caller included. At least 1, at most 1024. */
void set_threads(int count);
int threads();

using PieceFunction = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for_erased(int64_t count, int64_t grain, PieceFunction function, void* context);
void parallel_each_erased(int64_t count, PieceFunction function, void* context);

/* Calls body(begin, end) for disjoint pieces of [0, count), none shorter than grain except the last. */
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  parallel_for_erased(
      count, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<Plain*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/* Calls body(i) for each i of [0, count), taken one by one in ascending order: the last should be the small ones. */
template <class Body>
void parallel_each(int64_t count, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  parallel_each_erased(
      count,
      [](void* context, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) (*static_cast<Plain*>(context))(i);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/* What the floating-point control registers of the caller and of every pool thread say. */
struct FloatEnvironment {
  bool flush_to_zero = false;
  bool denormals_are_zero = false;
  std::string rounding = "nearest";
};

/* The worst over all threads: a flag is set if any thread has it set. */
FloatEnvironment float_environment();

/* Puts every pool thread and the caller back to round-to-nearest with subnormals kept. */
void reset_float_environment();

/* A buffer of the calling thread, 64-byte aligned, kept between calls. slot: 0..7. Throws std::bad_alloc. */
void* thread_buffer(int slot, uint64_t bytes);

}  // namespace identic

#endif

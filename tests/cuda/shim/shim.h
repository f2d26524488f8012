/*
 * Runs CUDA kernels on the CPU: one block at a time, one fiber for each of its threads.
 *
 * A thread runs until it waits at a barrier or a warp's exchange, so threads interleave there and
 * nowhere else; the order in which they, and blocks, take their turns is one of three. A barrier that
 * some threads never reach is reported. Dynamic shared memory begins as NaNs in every block.
 *
 * Included before the kernel's own text. Floats have no atomics here, and no libm.
 */
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#ifndef __x86_64__
#include <ucontext.h>
#endif

/* ---- words of the language ------------------------------------------------------------------- */

#ifndef __global__
#define __global__
#endif
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#define __shared__ static
#define __constant__ static const
#define __restrict__ __restrict

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };

namespace shim {

/* ---- fibers ------------------------------------------------------------------------------------ */

constexpr int MOST_THREADS = 1024;
constexpr size_t STACK = 64 << 10;
constexpr size_t DYNAMIC = 232448;

struct Fiber {
#ifdef __x86_64__
  void* stack_pointer;
#else
  ucontext_t context;
#endif
  uint3 place;
  int number;
  bool done;
};

static Fiber fibers[MOST_THREADS];
static Fiber* current;
static char* stacks;
static uint3 thread_index, block_index;
static dim3 block_size, grid_size;
static int threads, live, order;
static unsigned long moves;  /* grows whenever a thread gets on */
static uint32_t noise;
static void (*body)(void*);
static void* body_argument;
alignas(128) static unsigned char dynamic[DYNAMIC];

#ifdef __x86_64__
static void* scheduler;
extern "C" void shim_switch(void** save, void* to);
asm(R"(.text
.local shim_switch
.type shim_switch,@function
shim_switch:
 pushq %rbp
 pushq %rbx
 pushq %r12
 pushq %r13
 pushq %r14
 pushq %r15
 movq %rsp,(%rdi)
 movq %rsi,%rsp
 popq %r15
 popq %r14
 popq %r13
 popq %r12
 popq %rbx
 popq %rbp
 ret
)");
static void leave() { shim_switch(&current->stack_pointer, scheduler); }
static void enter(Fiber& fiber) { shim_switch(&scheduler, fiber.stack_pointer); }
static void begin();
static void prepare(Fiber& fiber, char* stack) {
  void** top = reinterpret_cast<void**>(stack + STACK) - 8;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(begin);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.stack_pointer = top;
}
#else
static ucontext_t scheduler;
static void leave() { swapcontext(&current->context, &scheduler); }
static void enter(Fiber& fiber) { swapcontext(&scheduler, &fiber.context); }
static void begin();
static void prepare(Fiber& fiber, char* stack) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = STACK;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, begin, 0);
}
#endif

static void begin() {
  body(body_argument);
  current->done = true;
  leave();
  __builtin_trap();
}

static void pause() {
  leave();
  thread_index = current->place;
}

/* ---- barriers ---------------------------------------------------------------------------------- */

struct Gate { unsigned long opened; int waiting; };
static Gate block_gate, warp_gates[MOST_THREADS / 32];

/* Waits until all of `members` threads have come; for good, if some never do. */
static void wait_at(Gate& gate, int members) {
  ++moves;
  const unsigned long before = gate.opened;
  if (++gate.waiting == members) {
    gate.waiting = 0;
    ++gate.opened;
    return;
  }
  while (gate.opened == before) pause();
  ++moves;
}
static void block_barrier() { wait_at(block_gate, threads); }
static void warp_barrier() {
  const int warp = current->number / 32;
  const int left = threads - 32 * warp;
  wait_at(warp_gates[warp], left < 32 ? left : 32);
}

static uint64_t posted[MOST_THREADS];

/* The value that lane `from` of this warp gives; all lanes take part. */
template <class T>
static T exchange(T value, int from) {
  static_assert(sizeof(T) <= 8, "at most eight bytes are exchanged");
  uint64_t word = 0;
  memcpy(&word, &value, sizeof value);
  posted[current->number] = word;
  warp_barrier();
  word = posted[(current->number & ~31) + (from & 31)];
  T result;
  memcpy(&result, &word, sizeof result);
  warp_barrier();
  return result;
}
static unsigned ballot(bool yes) {
  posted[current->number] = yes;
  warp_barrier();
  unsigned votes = 0;
  const int first = current->number & ~31;
  for (int lane = 0; lane < 32 && first + lane < threads; ++lane) votes |= unsigned(posted[first + lane] != 0) << lane;
  warp_barrier();
  return votes;
}
static int lane() { return current->number & 31; }

/* ---- launches ------------------------------------------------------------------------------------ */

/* The place in turn `i` of `n`: ascending, descending, or odd multiples modulo a power of two from a random start. */
struct Turns {
  long long n, size, start, step;
  explicit Turns(long long count) : n(count), size(1), start(0), step(1) {
    if (order != 2) return;
    while (size < n) size *= 2;
    noise = noise * 1664525u + 1013904223u;
    start = (noise >> 8) % size;
    step = (noise >> 3) | 1;
  }
  template <class Visit>
  bool each(Visit visit) const {
    if (order == 2) {
      for (long long i = 0; i < size; ++i) {
        const long long at = (start + i * step) & (size - 1);
        if (at < n && !visit(at)) return false;
      }
      return true;
    }
    for (long long i = 0; i < n; ++i) {
      if (!visit(order ? n - 1 - i : i)) return false;
    }
    return true;
  }
};

static bool run_block(size_t dynamic_bytes) {
  memset(dynamic, 0xff, dynamic_bytes);
  block_gate = Gate{};
  memset(warp_gates, 0, sizeof warp_gates);
  for (int i = 0; i < threads; ++i) {
    Fiber& fiber = fibers[i];
    fiber.number = i;
    fiber.done = false;
    const unsigned u = unsigned(i);
    fiber.place = {u % block_size.x, u / block_size.x % block_size.y, u / block_size.x / block_size.y};
    prepare(fiber, stacks + STACK * size_t(i));
  }
  live = threads;
  while (live) {
    const unsigned long before = moves;
    Turns(threads).each([](long long i) {
      current = &fibers[i];
      if (current->done) return true;
      thread_index = current->place;
      enter(*current);
      if (current->done) {
        --live;
        ++moves;
      }
      return true;
    });
    if (moves == before) return false;
  }
  return true;
}

/* Kinds of parameters, as the caller names them. */
enum Kind : int { ARRAY, SIGNED64, UNSIGNED32, FLOAT32, WORDS };

template <class P>
static bool fits(int kind, int bytes) {
  using T = std::remove_cv_t<P>;
  if (int(sizeof(T)) != bytes) return false;
  if (std::is_pointer_v<T>) return kind == ARRAY;
  if (std::is_class_v<T>) return kind == WORDS;
  if (std::is_floating_point_v<T>) return kind == FLOAT32;
  return kind == (bytes == 8 ? SIGNED64 : UNSIGNED32);
}

struct Launch {
  long long grid[3], block[3], dynamic_bytes;
  int order, count;
  const int* kinds;
  const int* bytes;
  void* const* values;
};

template <class... P, size_t... I>
static int launch(const Launch& how, void (*kernel)(P...), std::index_sequence<I...>) {
  if (how.count != int(sizeof...(P))) return 2;
  if (!(fits<P>(how.kinds[I], how.bytes[I]) && ... && true)) return 3;
  block_size = {unsigned(how.block[0]), unsigned(how.block[1]), unsigned(how.block[2])};
  grid_size = {unsigned(how.grid[0]), unsigned(how.grid[1]), unsigned(how.grid[2])};
  threads = int(how.block[0] * how.block[1] * how.block[2]);
  order = how.order;
  noise = 12345;
  if (!stacks) {
    void* room = mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return 4;
    stacks = static_cast<char*>(room);
  }
  auto run = [&] { kernel(*static_cast<std::remove_cv_t<P>*>(how.values[I])...); };
  body_argument = &run;
  body = [](void* argument) { (*static_cast<decltype(run)*>(argument))(); };
  const long long blocks = how.grid[0] * how.grid[1] * how.grid[2];
  const bool ended = Turns(blocks).each([&](long long i) {
    block_index = {unsigned(i % how.grid[0]), unsigned(i / how.grid[0] % how.grid[1]),
                   unsigned(i / how.grid[0] / how.grid[1])};
    return run_block(size_t(how.dynamic_bytes));
  });
  return ended ? 0 : 1;
}

template <class... P>
static int launch(const Launch* how, void (*kernel)(P...)) {
  return launch(*how, kernel, std::index_sequence_for<P...>{});
}

}  // namespace shim

/* What the tests add for each entry point. */
#define SHIM_ENTRY(NAME) \
  extern "C" int shim_##NAME(const shim::Launch* how) { return shim::launch(how, NAME); }

/* ---- built-in variables and barriers ----------------------------------------------------------------- */

#define threadIdx (shim::thread_index)
#define blockIdx (shim::block_index)
#define blockDim (shim::block_size)
#define gridDim (shim::grid_size)
#define warpSize 32

#define __syncthreads() shim::block_barrier()
#define __syncwarp(...) shim::warp_barrier()
#define __threadfence()
#define __threadfence_block()

template <class T> static inline T __shfl_sync(unsigned, T v, int from) { return shim::exchange(v, from); }
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int m) { return shim::exchange(v, shim::lane() ^ m); }
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned d) {
  const int to = shim::lane() + int(d);
  return shim::exchange(v, to < 32 ? to : shim::lane());
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned d) {
  const int to = shim::lane() - int(d);
  return shim::exchange(v, to >= 0 ? to : shim::lane());
}
static inline unsigned __ballot_sync(unsigned, int p) { return shim::ballot(p != 0); }
static inline int __any_sync(unsigned, int p) { return shim::ballot(p != 0) != 0; }
static inline int __all_sync(unsigned, int p) { return shim::ballot(p == 0) == 0; }

/* ---- arithmetic, each rounded to nearest --------------------------------------------------------------- */

static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __double2float_rn(double a) { return static_cast<float>(a); }
static inline double __int2double_rn(int a) { return static_cast<double>(a); }
static inline float __int2float_rn(int a) { return static_cast<float>(a); }
static inline float __uint2float_rn(unsigned a) { return static_cast<float>(a); }
static inline float __ll2float_rn(long long a) { return static_cast<float>(a); }
static inline float __ull2float_rn(unsigned long long a) { return static_cast<float>(a); }
static inline double __ull2double_rn(unsigned long long a) { return static_cast<double>(a); }

namespace shim {
template <class To, class From>
static inline To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits of one size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace shim
static inline int __float_as_int(float a) { return shim::same_bits<int>(a); }
static inline unsigned __float_as_uint(float a) { return shim::same_bits<unsigned>(a); }
static inline float __int_as_float(int a) { return shim::same_bits<float>(a); }
static inline float __uint_as_float(unsigned a) { return shim::same_bits<float>(a); }
static inline long long __double_as_longlong(double a) { return shim::same_bits<long long>(a); }
static inline double __longlong_as_double(long long a) { return shim::same_bits<double>(a); }

/* ---- integers -------------------------------------------------------------------------------------------- */

static inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static inline int __popc(unsigned a) { return __builtin_popcount(a); }
static inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
static inline int __clz(int a) { return a ? __builtin_clz(unsigned(a)) : 32; }
static inline int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }
static inline int __ffs(int a) { return __builtin_ffs(a); }
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return unsigned((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return unsigned(((uint64_t)high << 32 | low) >> (by & 31));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned order) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= unsigned(bytes >> (8 * (order >> 4 * i & 7)) & 255) << 8 * i;
  return result;
}
static inline int min(int a, int b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }
static inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
static inline long long min(long long a, long long b) { return b < a ? b : a; }
static inline long long max(long long a, long long b) { return a < b ? b : a; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
static inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }

/* Atomics of integers: threads interleave at barriers only. */
namespace shim {
template <class T, class Change>
static inline T replaced(T* at, Change change) {
  static_assert(std::is_integral_v<T>, "floats have no atomics");
  const T before = *at;
  *at = change(before);
  return before;
}
}  // namespace shim
template <class T> static inline T atomicAdd(T* at, std::common_type_t<T> v) { return shim::replaced(at, [=](T x) { return T(x + v); }); }
template <class T> static inline T atomicMax(T* at, std::common_type_t<T> v) { return shim::replaced(at, [=](T x) { return x < v ? v : x; }); }
template <class T> static inline T atomicMin(T* at, std::common_type_t<T> v) { return shim::replaced(at, [=](T x) { return v < x ? v : x; }); }
template <class T> static inline T atomicOr(T* at, std::common_type_t<T> v) { return shim::replaced(at, [=](T x) { return T(x | v); }); }
template <class T> static inline T atomicExch(T* at, std::common_type_t<T> v) { return shim::replaced(at, [=](T) { return v; }); }
template <class T> static inline T atomicCAS(T* at, std::common_type_t<T> old, std::common_type_t<T> v) {
  return shim::replaced(at, [=](T x) { return x == old ? v : x; });
}

/* ---- vectors of the language --------------------------------------------------------------------------------- */

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) longlong2 { long long x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <class T> static inline T __ldg(const T* at) { return *at; }

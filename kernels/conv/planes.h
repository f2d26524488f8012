/*
 * The planes that convolutions read: a tensor with its padding in place.
 *
 * An element's address is an offset for the window plus one for the tap, so that panels can be
 * packed from sums of offsets; windows of one row are neighbours.
 */
#ifndef IDENTIC_CONV_PLANES_H
#define IDENTIC_CONV_PLANES_H

#include <cstdint>

#include "common/windows.h"

namespace identic {

/*
 * Where the places of one axis lie in the planes: place p at p * step - first, in [0, length); where `every` is not 1,
 * of a step of 1, only each every-th of these is there.
 */
struct Spread {
  int64_t size, step, first, length;
  int64_t every = 1;

  /* Whether places lie as they do in the tensor. */
  bool plain() const { return step == 1 && first == 0 && length == size && every == 1; }
};

/* Places of the windowed tensor itself, with what its windows reach of the padding; windows of one place need no others. */
inline Spread padded(const WindowAxis& a) {
  if (a.window == 1) return {a.size, 1, -a.before, a.count, a.stride};
  return {a.size, 1, -a.before, (a.count - 1) * a.stride + a.span()};
}

/* How far apart in such planes the first places of two neighbouring windows are. */
inline int64_t apart(const WindowAxis& a) { return a.window == 1 ? 1 : a.stride; }

/* Results of the windows as what a place of the operand reads, tap by tap backwards. */
inline Spread between(const WindowAxis& a) {
  return {a.count, a.stride, a.before - a.span() + 1, a.size + a.span() - 1};
}

/*
 * A row has `phases` parts, `phase` apart: column i of the spread row is element i / phases of part i % phases, so
 * that windows as far apart as there are phases are neighbours.
 */
struct Planes {
  const float* data;
  int64_t plane, row, phases, phase;
};

/* Most elements that planes may have beside tensors of so many. */
inline int64_t most_beside(int64_t tensors) { return 4 * tensors + (1 << 20); }

/* Whether planes for `count` planes of a tensor have at most `most` elements. */
bool fits(const Spread& down, const Spread& across, int64_t phases, int64_t count, int64_t most);

/* x itself where its planes are these; else a copy on the calling thread's buffer, made by all threads. */
Planes make_planes(const float* x, int64_t count, const Spread& down, const Spread& across, int64_t phases);

}  // namespace identic

#endif

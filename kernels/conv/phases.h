/* conv_dx with a stride, without the zeros between windows. */
#ifndef IDENTIC_CONV_PHASES_H
#define IDENTIC_CONV_PHASES_H

#include "conv/cpu.h"

namespace identic {

/*
 * Computes conv_dx place by place of the stride's phases, each with the taps that meet a window there, and returns
 * true; returns false, having written nothing that counts, where that would not give the bits of the rule or is not
 * worth it.
 */
bool conv_dx_by_phases(float* out, const float* grad, const float* w, const ConvShape& shape);

}  // namespace identic

#endif

/*
 * Streams: straight runs of elementwise binary32 operators whose values stay in registers.
 *
 * A stream is a list of steps over a group of a few vectors, called the running value. A step
 * loads the running value, applies an operator to it and an operand in memory, or stores it; then
 * the next step takes over with the running value still in registers. So a chain of operators
 * reads and writes memory only for operands and for what is needed later.
 *
 * The steps are the operators of the elementwise kernels, in the order that the chain states;
 * only the canonical NaN (NUM-2) waits until a value leaves: a NaN stays a NaN in between.
 */
#ifndef IDENTIC_FUSED_STREAM_H
#define IDENTIC_FUSED_STREAM_H

#include <cstdint>
#include <vector>

#include "native/codes.h"

namespace identic {

/* Elements that a chain takes through all its stages at a time: a dozen temporaries of them stay near. */
constexpr int64_t CHAIN_BLOCK = 4096;

/*
 * What a step does with the running value v.
 *
 *   load, spread           v = operand; the operand is one a group element, or one for all
 *   store                  operand = v
 *   canonical, square      v = canonical v, v = v * v
 *   store canonical        v = canonical v, operand = v
 *   unary + U              v = U(v)
 *   binary + 4 B + 2 R + S v = B(v, operand), with R the other way round; S: one operand for all.
 *                          A comparison leaves v and stores its result at mask.
 *   where + 2 R + S        v = mask ? v : operand, with R mask ? operand : v
 */
enum StreamCode : int {
  STREAM_LOAD, STREAM_SPREAD, STREAM_STORE, STREAM_STORE_CANONICAL, STREAM_CANONICAL, STREAM_SQUARE, STREAM_END,
  STREAM_UNARY,
  STREAM_BINARY = STREAM_UNARY + UNARY_COUNT,
  STREAM_WHERE = STREAM_BINARY + 4 * BINARY_COUNT,
  STREAM_COUNT = STREAM_WHERE + 4
};

/* A step as planned: a StreamCode and the slots that it uses, -1 for none. */
struct StreamPlan {
  int code;
  int slot;
  int mask;
};

/* A function of a path that does one kind of step; its real type is the path's own. */
using StreamRun = void (*)();

/* A step as run on one path. */
struct StreamStep {
  StreamRun run;
  int32_t slot;
  int32_t mask;
};

/* Rows that a stream runs over: where each slot lies in the first, and how far the next row is, in bytes. */
struct StreamRows {
  uint8_t** places;  /* moved on */
  const int64_t* steps;
  int slots;
  int64_t count;
};

/* One operator of a chain, as far as a stream needs it. Slots number the chain's values. */
struct StreamOperator {
  int code;          /* StreamCode of the family: STREAM_UNARY + U, STREAM_BINARY + 4 B or STREAM_WHERE */
  int operands[3];   /* slots; for where the mask comes first */
  int result;
};

/* What the rest of a chain says about a slot. */
struct StreamValue {
  bool of_rows;      /* one element for all of a row */
  bool kept;         /* read outside the stream, or an output */
  bool clean;        /* its NaNs must be those of NUM-2 when it is read */
};

/*
 * Orders the operators so that most find an operand in the running value, and plans their steps.
 * Values that no later step finds there are stored in their slots. The steps number the slots that
 * they use from 0; `slots` becomes the chain's number of each.
 */
std::vector<StreamPlan> plan_stream(std::vector<StreamOperator>& operators, const std::vector<StreamValue>& values,
                                    std::vector<int>& slots);

}  // namespace identic

#endif

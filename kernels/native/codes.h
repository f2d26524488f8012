/* Numbers of the elementwise operators and of the element kinds they work on. */
#ifndef IDENTIC_NATIVE_CODES_H
#define IDENTIC_NATIVE_CODES_H

#include <cstdint>

namespace identic {

enum Kind : int { KIND_F32, KIND_I64, KIND_I32, KIND_BOOL, KIND_COUNT };

enum Unary : int {
  UNARY_NEG, UNARY_ABS, UNARY_EXP, UNARY_LOG, UNARY_TANH, UNARY_ERF, UNARY_SIGMOID, UNARY_SQRT, UNARY_RSQRT,
  UNARY_SIN, UNARY_COS, UNARY_NOT, UNARY_COUNT
};

enum Binary : int {
  BINARY_ADD, BINARY_SUB, BINARY_MUL, BINARY_DIV, BINARY_MAXIMUM, BINARY_MINIMUM,
  BINARY_EQ, BINARY_NE, BINARY_LT, BINARY_LE, BINARY_GT, BINARY_GE, BINARY_AND, BINARY_OR, BINARY_COUNT
};

constexpr const char* UNARY_NAMES[UNARY_COUNT] = {"neg", "abs", "exp", "log", "tanh", "erf", "sigmoid", "sqrt",
                                                  "rsqrt", "sin", "cos", "not"};
constexpr const char* BINARY_NAMES[BINARY_COUNT] = {"add", "sub", "mul", "div", "maximum", "minimum", "eq",
                                                    "ne", "lt", "le", "gt", "ge", "and", "or"};

}  // namespace identic

#endif

// The native module identic.kernels._native: the CPU twins of the operators, bound for Python.

#include <nanobind/nanobind.h>

NB_MODULE(_native, m) { m.doc() = "CPU twins of the operators."; }

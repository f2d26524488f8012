/*
 * The native module identic.kernels._native: the CPU twins of the operators, bound for Python.
 *
 * Every function writes into an array that the caller made, and releases the interpreter's lock
 * while it computes. Bits depend neither on the number of threads nor on the path.
 */
#include <stdexcept>

#include "native/arrays.h"
#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

nb::dict float_environment_() {
  FloatEnvironment environment;
  {
    nb::gil_scoped_release release;
    environment = float_environment();
  }
  nb::dict result;
  result["ftz"] = environment.flush_to_zero;
  result["daz"] = environment.denormals_are_zero;
  result["rounding"] = environment.rounding;
  return result;
}

void bind_machine(nb::module_& m) {
  m.def("set_threads", set_threads, nb::arg("count"), "Sets the number of threads, the caller included (1..1024).");
  m.def("threads", threads, "Number of threads that work on a call.");
  m.def("path", [] { return std::string(current_path().name); }, "Name of the vector path in use.");
  m.def("paths", available_paths, "Names of the paths this machine can run, the preferred one first.");
  m.def(
      "set_path",
      [](const std::string& name) {
        try {
          set_path(name);
        } catch (const std::invalid_argument& problem) {
          throw nb::value_error(problem.what());
        }
      },
      nb::arg("name"), "Chooses a path by name, or the preferred one with \"auto\". For tests and measurements.");
  m.def("float_environment", float_environment_,
        "NUM-21: {'ftz': bool, 'daz': bool, 'rounding': str}, the worst over the caller and all pool threads.");
  m.def("reset_float_environment", reset_float_environment, nb::call_guard<nb::gil_scoped_release>(),
        "Puts the caller and all pool threads back to rounding to nearest with subnormals kept.");
}

}  // namespace
}  // namespace identic

NB_MODULE(_native, m) {
  m.doc() = "CPU twins of the operators.";
  identic::bind_machine(m);
  identic::bind_matmul(m);
  identic::bind_elementwise(m);
  identic::bind_movement(m);
  identic::bind_sorting(m);
  identic::bind_windows(m);
  identic::bind_hashing(m);
  identic::bind_chain(m);
}

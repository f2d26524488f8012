/* The Python class Chain. */
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "native/arrays.h"
#include "native/chain.h"

namespace identic {
namespace {

using Inputs = std::vector<std::pair<std::string, bool>>;
using Code = std::vector<std::pair<std::string, std::vector<int>>>;

Kind kind_named(const std::string& name) {
  if (name == "float32") return KIND_F32;
  if (name == "int64") return KIND_I64;
  if (name == "int32") return KIND_I32;
  if (name == "bool") return KIND_BOOL;
  throw nb::value_error(("a slot cannot hold " + name).c_str());
}

Type type_of(Kind kind) {
  constexpr Type TYPES[KIND_COUNT] = {TYPE_F32, TYPE_I64, TYPE_I32, TYPE_BOOL};
  return TYPES[kind];
}

void make(Chain* self, const Inputs& inputs_, const Code& code_, const std::vector<int>& outputs) {
  std::vector<Chain::Input> inputs;
  for (const auto& [name, of_rows] : inputs_) inputs.push_back({kind_named(name), of_rows});
  std::vector<Chain::Instruction> code;
  for (const auto& [name, operands] : code_) code.push_back({name, operands});
  try {
    new (self) Chain(inputs, code, outputs);
  } catch (const std::invalid_argument& problem) {
    throw nb::value_error(problem.what());
  }
}

void run(const Chain& self, const nb::list& outputs, const nb::list& inputs, const Sizes& shape,
         const std::vector<Sizes>& strides) {
  if (inputs.size() != self.input_count() || strides.size() != inputs.size() || outputs.size() != self.output_count()) {
    throw nb::value_error("the chain has another number of inputs or outputs");
  }
  if (shape.empty()) throw nb::value_error("a chain runs over at least one axis");
  const int64_t elements = element_count(shape);
  const int64_t rows = element_count(Sizes(shape.begin(), shape.end() - 1));
  std::vector<std::unique_ptr<Array>> held;
  std::vector<void*> to;
  std::vector<const void*> from;
  for (size_t i = 0; i < outputs.size(); ++i) {
    held.push_back(std::make_unique<Output>(outputs[i]));
    held.back()->of(type_of(self.output_kind(i))).sized(self.output_of_rows(i) ? rows : elements);
    to.push_back(held.back()->data());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    held.push_back(std::make_unique<Input>(inputs[i], "an input"));
    held.back()->of(type_of(self.input_kind(i))).reaches(0, strides[i], shape);
    if (self.input_of_rows(i) && strides[i].back() != 0 && shape.back() > 1) {
      throw nb::value_error("an input of rows steps along the last axis");
    }
    from.push_back(held.back()->data());
  }
  if (self.reduces() && shape.back() == 0 && rows > 0) throw nb::value_error("a row has no elements");
  nb::gil_scoped_release release;
  self.run(to, from, shape, strides);
}

}  // namespace

void bind_chain(nb::module_& m) {
  nb::class_<Chain>(m, "Chain",
                    "Many elementwise operators, sums and maxima of rows in one pass; the bits are those of the "
                    "operators called one by one. The encoding is described in kernels/native/chain.h.")
      .def("__init__", make, nb::arg("inputs"), nb::arg("code"), nb::arg("outputs"),
           "inputs: (kind, of_rows) each; code: (operator, slots read) each; outputs: slots of instructions.")
      .def("run", run, nb::arg("outputs"), nb::arg("inputs"), nb::arg("shape"), nb::arg("strides"),
           "Fills the contiguous outputs from the inputs, which step over the shape by their strides in elements.");
}

}  // namespace identic

#include "native/chain.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "elementwise/cpu.h"
#include "functions/cpu.h"
#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t BLOCK = 1024;   /* elements of a block: a dozen temporaries of it stay near */
constexpr int64_t PIECE = 1 << 14; /* elements of a block times instructions worth a hand-over */
constexpr int SLOT_ROOMS = 3;     /* thread buffer that holds the temporaries */

int64_t bytes_of(Kind kind) { return kind == KIND_BOOL ? 1 : kind == KIND_I64 ? 8 : 4; }

Type type_of(Kind kind) {
  constexpr Type TYPES[KIND_COUNT] = {TYPE_F32, TYPE_I64, TYPE_I32, TYPE_BOOL};
  return TYPES[kind];
}

template <size_t COUNT>
int find(const std::string& name, const char* const (&names)[COUNT]) {
  for (size_t i = 0; i < COUNT; ++i) {
    if (name == names[i]) return static_cast<int>(i);
  }
  return -1;
}

constexpr const char* KIND_NAMES[KIND_COUNT] = {"float32", "int64", "int32", "bool"};

[[noreturn]] void refuse(const std::string& problem) { throw std::invalid_argument(problem); }

}  // namespace

/* ---- compilation --------------------------------------------------------------------------------- */

Chain::Chain(const std::vector<Input>& inputs, const std::vector<Instruction>& code, const std::vector<int>& outputs)
    : input_count_(inputs.size()), outputs_(outputs) {
  for (const Input& input : inputs) slots_.push_back({input.kind, input.of_rows});
  for (const Instruction& instruction : code) compile(instruction);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] < static_cast<int>(input_count_) || outputs[i] >= static_cast<int>(slots_.size())) {
      refuse("an output is no result of an instruction");
    }
    Slot& slot = slots_[static_cast<size_t>(outputs[i])];
    if (slot.output >= 0) refuse("a slot is an output twice");
    slot.output = static_cast<int>(i);
  }
  assign_rooms();
}

int Chain::checked(const Instruction& instruction, size_t operand) const {
  const int slot = instruction.operands[operand];
  if (slot < 0 || slot >= static_cast<int>(slots_.size())) refuse(instruction.name + " reads a slot that is not there");
  return slot;
}

void Chain::compile(const Instruction& instruction) {
  const std::string& name = instruction.name;
  const int unary = find(name, UNARY_NAMES), binary = find(name, BINARY_NAMES), kind = find(name, KIND_NAMES);
  const bool reduction = name == "sum_last" || name == "amax";
  const size_t arity = name == "where" ? 3 : binary >= 0 ? 2 : unary >= 0 || kind >= 0 || reduction ? 1 : 0;
  if (arity == 0) refuse("unknown operator " + name);
  if (instruction.operands.size() != arity) refuse(name + " has the wrong number of operands");
  Compiled step{Step::unary, 0, {0, 0, 0}};
  bool of_rows = true;
  for (size_t i = 0; i < arity; ++i) {
    step.operands[i] = checked(instruction, i);
    Slot& slot = slots_[static_cast<size_t>(step.operands[i])];
    of_rows = of_rows && slot.of_rows;
    slot.last_use = static_cast<int>(code_.size());
  }
  const Kind first = slots_[static_cast<size_t>(step.operands[0])].kind;
  const Kind last = slots_[static_cast<size_t>(step.operands[arity - 1])].kind;
  Kind result = last;
  if (unary >= 0) {
    if (first != (unary == UNARY_NOT ? KIND_BOOL : KIND_F32)) refuse(name + " is not defined on this kind");
    step.step = unary == UNARY_SIN || unary == UNARY_COS ? Step::circular : Step::unary;
    step.code = unary;
  } else if (binary >= 0) {
    if (first != last || !has_binary(static_cast<Binary>(binary), first)) refuse(name + " is not defined on these kinds");
    step.step = Step::binary;
    step.code = binary;
    if (binary >= BINARY_EQ) result = KIND_BOOL;
  } else if (kind >= 0) {
    step.step = Step::cast;
    step.code = kind;
    result = static_cast<Kind>(kind);
  } else if (reduction) {
    if (first != KIND_F32 || of_rows) refuse(name + " takes a whole float32 slot");
    step.step = name == "amax" ? Step::amax : Step::sum_last;
    of_rows = true;
    reduces_ = true;
  } else {
    const Kind middle = slots_[static_cast<size_t>(step.operands[1])].kind;
    if (first != KIND_BOOL || middle != last) refuse("where takes a bool and two slots of one kind");
    step.step = Step::where;
  }
  code_.push_back(step);
  slots_.push_back({result, of_rows});
}

/* A temporary is free again after its last reader; a result may take its place when both have one element size. */
void Chain::assign_rooms() {
  std::vector<int> free_rooms[2];
  int* counts[2] = {&whole_rooms_, &row_rooms_};
  for (size_t i = 0; i < code_.size(); ++i) {
    Slot& result = slots_[input_count_ + i];
    if (result.last_use < 0 && result.output < 0) result.last_use = static_cast<int>(i);
    std::vector<const Slot*> dying;
    for (int operand : code_[i].operands) {
      const Slot* slot = &slots_[static_cast<size_t>(operand)];
      const bool known = std::find(dying.begin(), dying.end(), slot) != dying.end();
      if (slot->room >= 0 && slot->last_use == static_cast<int>(i) && slot != &result && !known) dying.push_back(slot);
    }
    auto give_back = [&](bool same_size) {
      for (const Slot* slot : dying) {
        const bool same = bytes_of(slot->kind) == bytes_of(result.kind) && slot->of_rows == result.of_rows;
        if (same == same_size) free_rooms[slot->of_rows].push_back(slot->room);
      }
    };
    give_back(true);
    if (result.output < 0) {
      auto& rooms = free_rooms[result.of_rows];
      if (rooms.empty()) rooms.push_back((*counts[result.of_rows])++);
      result.room = rooms.back();
      rooms.pop_back();
      element_bytes_ = std::max(element_bytes_, bytes_of(result.kind));
      if (result.last_use == static_cast<int>(i)) rooms.push_back(result.room);
    }
    give_back(false);
  }
}

/* ---- execution ------------------------------------------------------------------------------------- */

/* One call of run: the shape as (outer axes, rows, columns) and the operands' strides over it. */
struct Chain::Plan {
  const std::vector<void*>* outputs;
  const std::vector<const void*>* inputs;
  std::vector<int64_t> outer;                /* sizes of the outer axes */
  std::vector<std::vector<int64_t>> strides; /* of each input: outer axes, rows, columns */
  int64_t rows, columns;
  int64_t block_rows, block_columns;
};

/* A slot within a block: element (r, c) is at data + (r * row_step + c * step) elements. */
struct Chain::View {
  uint8_t* data;
  Kind kind;
  int64_t row_step, step;
  uint8_t* row(int64_t r) const { return data + r * row_step * bytes_of(kind); }
};

void Chain::execute(const Compiled& step, const View* operands, const View& result, int64_t rows,
                    int64_t columns) const {
  const Path& path = current_path();
  const View &a = operands[0], &b = operands[1], &c = operands[2];
  if (step.step == Step::sum_last || step.step == Step::amax) {
    auto reduce = step.step == Step::amax ? path.reduce.maximum_rows : path.reduce.sum_rows;
    float* out = reinterpret_cast<float*>(result.data);
    if (a.step == 1 && a.row_step == columns) {
      reduce(out, reinterpret_cast<const float*>(a.data), rows, columns);
      return;
    }
    std::vector<float> gathered(static_cast<size_t>(columns));
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = reinterpret_cast<const float*>(a.row(r));
      for (int64_t i = 0; i < columns; ++i) gathered[static_cast<size_t>(i)] = from[i * a.step];
      reduce(out + r, gathered.data(), 1, columns);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    switch (step.step) {
      case Step::binary:
        path.elementwise.binary[step.code][a.kind](result.row(r), a.row(r), a.step, b.row(r), b.step, columns);
        break;
      case Step::where:
        path.elementwise.where[bytes_of(b.kind) == 1 ? 0 : bytes_of(b.kind) == 4 ? 2 : 3](
            result.row(r), a.row(r), a.step, b.row(r), b.step, c.row(r), c.step, columns);
        break;
      default: {
        /* One operand, next to each other: any other step is gathered element by element. */
        const int64_t n = a.step == 1 ? columns : 1;
        for (int64_t i = 0; i < columns; i += n) {
          uint8_t* to = result.row(r) + i * bytes_of(result.kind);
          const uint8_t* from = a.row(r) + i * a.step * bytes_of(a.kind);
          if (step.step == Step::unary) {
            path.elementwise.unary[step.code](to, from, n);
          } else if (step.step == Step::circular) {
            circular(step.code == UNARY_COS, reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), n);
          } else {
            cast_row(type_of(result.kind), type_of(a.kind))(to, from, n);
          }
        }
      }
    }
  }
}

void Chain::run_block(const Plan& plan, int64_t outer, int64_t row, int64_t rows, int64_t column,
                      int64_t columns) const {
  const int64_t block = plan.block_rows * plan.block_columns;
  const int64_t whole_bytes = (block * element_bytes_ + 63) / 64 * 64;
  const int64_t row_bytes = (plan.block_rows * element_bytes_ + 63) / 64 * 64;
  uint8_t* rooms = static_cast<uint8_t*>(
      thread_buffer(SLOT_ROOMS, static_cast<uint64_t>(whole_rooms_ * whole_bytes + row_rooms_ * row_bytes + 64)));
  const int64_t flat_row = outer * plan.rows + row;
  std::vector<View> views(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    View& view = views[i];
    view.kind = slot.kind;
    if (i < input_count_) {
      const auto& strides = plan.strides[i];
      const size_t axes = plan.outer.size();
      int64_t offset = row * strides[axes] + column * strides[axes + 1];
      int64_t rest = outer;
      for (size_t axis = axes; axis-- > 0;) {
        offset += rest % plan.outer[axis] * strides[axis];
        rest /= plan.outer[axis];
      }
      view.data = static_cast<uint8_t*>(const_cast<void*>((*plan.inputs)[i])) + offset * bytes_of(slot.kind);
      view.row_step = strides[axes];
      view.step = strides[axes + 1];
      continue;
    }
    view.row_step = slot.of_rows ? 1 : columns;
    view.step = slot.of_rows ? 0 : 1;
    if (slot.output >= 0) {
      const int64_t at = slot.of_rows ? flat_row : flat_row * plan.columns + column;
      view.data = static_cast<uint8_t*>((*plan.outputs)[static_cast<size_t>(slot.output)]) + at * bytes_of(slot.kind);
      if (!slot.of_rows) view.row_step = plan.columns;
    } else {
      view.data = slot.of_rows ? rooms + whole_rooms_ * whole_bytes + slot.room * row_bytes : rooms + slot.room * whole_bytes;
    }
  }
  for (size_t i = 0; i < code_.size(); ++i) {
    const Compiled& step = code_[i];
    View operands[3] = {views[static_cast<size_t>(step.operands[0])], views[static_cast<size_t>(step.operands[1])],
                        views[static_cast<size_t>(step.operands[2])]};
    View result = views[input_count_ + i];
    int64_t r = rows, n = columns;
    const bool reduction = step.step == Step::sum_last || step.step == Step::amax;
    if (!reduction) {
      if (slots_[input_count_ + i].of_rows) {
        /* One element a row: the rows are the row. */
        for (View& view : operands) view.step = view.row_step;
        result.step = 1;
        n = rows;
        r = 1;
      } else {
        bool even = result.row_step == columns;
        for (const View& view : operands) {
          even = even && ((view.step == 1 && view.row_step == columns) || (view.step == 0 && view.row_step == 0));
        }
        if (even || rows == 1) {
          n = rows * columns;
          r = 1;
        }
      }
    }
    execute(step, operands, result, r, n);
  }
}

void Chain::run(const std::vector<void*>& outputs, const std::vector<const void*>& inputs, const Sizes& shape,
                const std::vector<Sizes>& strides) const {
  Plan plan{&outputs, &inputs, shape, strides, 1, 1, 1, 1};
  for (int64_t size : shape) {
    if (size == 0) return;
  }
  /* Merge neighbouring axes that every input sees as one; the last axis stays when rows have a meaning. */
  bool rows_matter = reduces_;
  for (const Slot& slot : slots_) rows_matter = rows_matter || slot.of_rows;
  for (size_t axis = plan.outer.size() - (rows_matter ? 1 : 0); axis-- > 1;) {
    bool merges = true;
    for (const auto& one : plan.strides) merges = merges && (one[axis - 1] == one[axis] * plan.outer[axis] || plan.outer[axis - 1] == 1);
    if (!merges) continue;
    plan.outer[axis - 1] *= plan.outer[axis];
    plan.outer.erase(plan.outer.begin() + static_cast<int64_t>(axis));
    for (auto& one : plan.strides) one.erase(one.begin() + static_cast<int64_t>(axis) - 1);
  }
  if (plan.outer.size() == 1) {
    plan.outer.insert(plan.outer.begin(), 1);
    for (auto& one : plan.strides) one.insert(one.begin(), 0);
  }
  plan.columns = plan.outer.back();
  plan.outer.pop_back();
  plan.rows = plan.outer.back();
  plan.outer.pop_back();
  plan.block_columns = reduces_ ? plan.columns : std::min(plan.columns, BLOCK);
  plan.block_rows = std::clamp<int64_t>(BLOCK / plan.block_columns, 1, plan.rows);
  int64_t outer = 1;
  for (int64_t size : plan.outer) outer *= size;
  const int64_t across = (plan.columns + plan.block_columns - 1) / plan.block_columns;
  const int64_t down = (plan.rows + plan.block_rows - 1) / plan.block_rows;
  const int64_t work = plan.block_rows * plan.block_columns * static_cast<int64_t>(code_.size() + 1);
  parallel_for(outer * down * across, std::max<int64_t>(1, 4 * PIECE / work), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t column = at % across * plan.block_columns;
      const int64_t row = at / across % down * plan.block_rows;
      run_block(plan, at / across / down, row, std::min(plan.block_rows, plan.rows - row), column,
                std::min(plan.block_columns, plan.columns - column));
    }
  });
}

}  // namespace identic

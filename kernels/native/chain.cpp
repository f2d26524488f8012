#include "native/chain.h"

#include <algorithm>
#include <stdexcept>

#include "elementwise/cpu.h"

namespace identic {
namespace {

int64_t bytes_of(Kind kind) { return kind == KIND_BOOL ? 1 : kind == KIND_I64 ? 8 : 4; }

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
  assign_stages();
  plan_streams();
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
  Compiled step{Step::unary, 0, {0, 0, 0}, static_cast<int>(arity)};
  bool of_rows = true;
  for (size_t i = 0; i < arity; ++i) {
    step.operands[i] = checked(instruction, i);
    of_rows = of_rows && slots_[static_cast<size_t>(step.operands[i])].of_rows;
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

/* Whether an instruction can be part of a stream: elementwise on binary32. */
bool Chain::is_streamed(size_t instruction) const {
  const Compiled& step = code_[instruction];
  const Slot& result = slots_[input_count_ + instruction];
  if (result.of_rows) return false;
  const Slot& first = slots_[static_cast<size_t>(step.operands[0])];
  switch (step.step) {
    case Step::unary: return step.code != UNARY_NOT;
    case Step::binary: return first.kind == KIND_F32;
    case Step::where: return result.kind == KIND_F32 && !first.of_rows;
    default: return false;
  }
}

/* An instruction waits for its operands, and one outside the streams for the stream before. */
void Chain::assign_stages() {
  for (size_t i = 0; i < code_.size(); ++i) {
    int stage = 0;
    for (int o = 0; o < code_[i].operand_count; ++o) {
      const size_t operand = static_cast<size_t>(code_[i].operands[o]);
      if (operand < input_count_) continue;
      const size_t maker = operand - input_count_;
      const bool next = is_streamed(maker) && !is_streamed(i);
      stage = std::max(stage, stage_of_[maker] + (next ? 1 : 0));
    }
    stage_of_.push_back(stage);
    if (stages_.size() <= static_cast<size_t>(stage)) stages_.resize(static_cast<size_t>(stage) + 1);
    Stage& its = stages_[static_cast<size_t>(stage)];
    (is_streamed(i) ? its.streamed : its.before).push_back(static_cast<int>(i));
  }
}

void Chain::plan_streams() {
  std::vector<StreamValue> values;
  for (const Slot& slot : slots_) values.push_back({slot.of_rows, slot.output >= 0, slot.output >= 0});
  for (size_t i = 0; i < code_.size(); ++i) {
    const Compiled& step = code_[i];
    const bool reduces = step.step == Step::sum_last || step.step == Step::amax;
    for (int o = 0; o < step.operand_count; ++o) {
      const size_t operand = static_cast<size_t>(step.operands[o]);
      if (operand < input_count_) continue;
      if (!is_streamed(i) || stage_of_[i] != stage_of_[operand - input_count_]) values[operand].kept = true;
      if (step.step == Step::where || (!is_streamed(i) && !reduces)) values[operand].clean = true;
    }
  }
  for (Stage& stage : stages_) {
    if (stage.streamed.empty()) continue;
    std::vector<StreamOperator> operators;
    for (int i : stage.streamed) {
      const Compiled& step = code_[static_cast<size_t>(i)];
      const int code = step.step == Step::unary    ? STREAM_UNARY + step.code
                       : step.step == Step::binary ? STREAM_BINARY + 4 * step.code
                                                   : static_cast<int>(STREAM_WHERE);
      operators.push_back({code, {step.operands[0], step.operands[1], step.operands[2]},
                           static_cast<int>(input_count_) + i});
    }
    stage.plan = plan_stream(operators, values, stage.slots);
    stage.streamed.clear();
    for (const StreamOperator& one : operators) stage.streamed.push_back(one.result - static_cast<int>(input_count_));
  }
}

/* A temporary is free again after the last instruction or stream that reads it, never within a stream. */
void Chain::assign_rooms() {
  std::vector<std::vector<int>> turns;
  for (const Stage& stage : stages_) {
    for (int i : stage.before) turns.push_back({i});
    if (!stage.streamed.empty()) turns.push_back(stage.streamed);
  }
  std::vector<size_t> last(slots_.size());
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    for (int i : turns[turn]) {
      const Compiled& step = code_[static_cast<size_t>(i)];
      last[input_count_ + static_cast<size_t>(i)] = turn;
      for (int o = 0; o < step.operand_count; ++o) last[static_cast<size_t>(step.operands[o])] = turn;
    }
  }
  std::vector<int> free_rooms[2];
  int* counts[2] = {&whole_rooms_, &row_rooms_};
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    for (int i : turns[turn]) {
      Slot& result = slots_[input_count_ + static_cast<size_t>(i)];
      if (result.output >= 0) continue;
      auto& rooms = free_rooms[result.of_rows];
      if (rooms.empty()) rooms.push_back((*counts[result.of_rows])++);
      result.room = rooms.back();
      rooms.pop_back();
      element_bytes_ = std::max(element_bytes_, bytes_of(result.kind));
    }
    for (size_t i = input_count_; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      const bool is_made = slot.room >= 0 && last[i] == turn;
      if (is_made) free_rooms[slot.of_rows].push_back(slot.room);
    }
  }
}

}  // namespace identic

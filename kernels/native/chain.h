/*
 * Chains: many elementwise operators, and sums and maxima along the last axis, in one pass.
 *
 * Memory is read and written once, and what lies between stays in registers or a near cache. A chain
 * works on blocks of rows, stage by stage: first what makes rows or integers, by the very row kernels
 * of the single operators, then a stream (fused/stream.h) of elementwise operators on binary32. Its
 * bits are those of the operators called one by one.
 *
 * Encoding. A chain has slots. Slots 0 .. inputs-1 are the inputs; instruction i defines slot
 * inputs + i from earlier slots:
 *
 *   unary names ("exp", ...)   one slot: float32, or bool for "not"
 *   binary names ("add", ...)  two slots of one kind
 *   "where"                    a bool slot, then two slots of one kind
 *   "float32" "int64" "int32" "bool"   conversion of one slot to that kind (NUM-5)
 *   "sum_last" "amax"          one whole float32 slot: a slot with one element a row
 *
 * A slot is whole (an element for each element of the shape) or one of rows (an element for each
 * row, that is for each index of all axes but the last). An input says which it is; a result is
 * whole when any operand is. Outputs are slots of instructions; a whole one is written to a
 * contiguous array of the shape, one of rows to a contiguous array of the shape without its last axis.
 *
 * Inputs are given with strides over the shape, 0 along what repeats; one of rows must have 0 along
 * the last axis.
 */
#ifndef IDENTIC_NATIVE_CHAIN_H
#define IDENTIC_NATIVE_CHAIN_H

#include <cstdint>
#include <string>
#include <vector>

#include "fused/stream.h"
#include "native/codes.h"

namespace identic {

using Sizes = std::vector<int64_t>;

class Chain {
 public:
  struct Input { Kind kind; bool of_rows; };
  struct Instruction { std::string name; std::vector<int> operands; };

  /* Checks and compiles. Throws std::invalid_argument for anything the encoding does not allow. */
  Chain(const std::vector<Input>& inputs, const std::vector<Instruction>& code, const std::vector<int>& outputs);

  /* What a caller must hand to run, in order. */
  size_t input_count() const { return input_count_; }
  Kind input_kind(size_t i) const { return slots_[i].kind; }
  bool input_of_rows(size_t i) const { return slots_[i].of_rows; }
  /* Whether it sums or takes maxima along the last axis. */
  bool reduces() const { return reduces_; }
  size_t output_count() const { return outputs_.size(); }
  Kind output_kind(size_t i) const { return slots_[static_cast<size_t>(outputs_[i])].kind; }
  bool output_of_rows(size_t i) const { return slots_[static_cast<size_t>(outputs_[i])].of_rows; }

  /* shape has at least one axis. Addresses are checked by the caller. */
  void run(const std::vector<void*>& outputs, const std::vector<const void*>& inputs, const Sizes& shape,
           const std::vector<Sizes>& strides) const;

 private:
  enum class Step { unary, circular, binary, where, cast, sum_last, amax };
  struct Slot {
    Kind kind;
    bool of_rows;
    int output = -1;     /* position among the outputs */
    int room = -1;       /* which temporary holds it, when it is neither input nor output */
  };
  struct Compiled {
    Step step;
    int code;            /* Unary, Binary, or the Kind converted to */
    int operands[3];
    int operand_count;
  };
  /* Instructions that run before a stream, one by one, and the stream. */
  struct Stage {
    std::vector<int> before;
    std::vector<int> streamed;
    std::vector<StreamPlan> plan;
    std::vector<int> slots;  /* of the plan's numbers */
  };
  struct Stream;
  struct Plan;
  struct View;
  struct Places;
  struct Block;

  void compile(const Instruction& instruction);
  int checked(const Instruction& instruction, size_t operand) const;
  bool is_streamed(size_t instruction) const;
  void assign_stages();
  void plan_streams();
  void assign_rooms();
  int64_t table_bytes() const;
  void see_piece(const Plan& plan, uint8_t* rooms, View* views) const;
  void see_block(const Plan& plan, const Block& block, View* views) const;
  void run_piece(const Plan& plan, int64_t begin, int64_t end) const;
  void run_block(const Plan& plan, const Block& block, const View* views, Places room) const;
  bool run_stream(const Plan& plan, size_t stage, const View* views, Places room, int64_t rows, int64_t columns) const;
  void run_one(const Plan& plan, int instruction, const View* views, int64_t rows, int64_t columns) const;
  void execute(const Plan& plan, const Compiled& step, const View* operands, const View& result, int64_t rows,
               int64_t columns) const;

  size_t input_count_;
  bool reduces_ = false;
  int whole_rooms_ = 0, row_rooms_ = 0;
  int64_t element_bytes_ = 1;  /* of the widest temporary */
  std::vector<Slot> slots_;
  std::vector<Compiled> code_;
  std::vector<int> stage_of_;  /* of each instruction */
  std::vector<Stage> stages_;
  std::vector<int> outputs_;
};

}  // namespace identic

#endif

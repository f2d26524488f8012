/* Runs chains: cuts the shape into blocks and takes each through all stages. */
#include <algorithm>

#include "elementwise/cpu.h"
#include "functions/cpu.h"
#include "native/chain.h"
#include "native/path.h"
#include "native/pool.h"

namespace identic {
namespace {

constexpr int64_t PIECE = 1 << 14; /* elements of a block times instructions worth a hand-over */
constexpr int SLOT_ROOMS = 3;      /* thread buffer that holds the temporaries */

int64_t bytes_of(Kind kind) { return kind == KIND_BOOL ? 1 : kind == KIND_I64 ? 8 : 4; }

Type type_of(Kind kind) {
  constexpr Type TYPES[KIND_COUNT] = {TYPE_F32, TYPE_I64, TYPE_I32, TYPE_BOOL};
  return TYPES[kind];
}

constexpr int64_t APART = 192;      /* bytes between temporaries: else all lie at one place of their pages */

int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Rows of elements that step along the row, made to lie next to each other. */
template <class T>
void gather(void* to_, const void* from_, int64_t row_step, int64_t step, int64_t rows, int64_t columns) {
  T* to = static_cast<T*>(to_);
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = static_cast<const T*>(from_) + r * row_step;
    for (int64_t i = 0; i < columns; ++i) to[r * columns + i] = from[i * step];
  }
}

}  // namespace

/* A stage's stream on the path in use. */
struct Chain::Stream {
  std::vector<StreamStep> wide, narrow;
};

/* One call of run: the shape as (outer axes, rows, columns) and the operands' strides over it. */
struct Chain::Plan {
  const std::vector<void*>* outputs;
  const std::vector<const void*>* inputs;
  std::vector<int64_t> outer;                /* sizes of the outer axes */
  std::vector<std::vector<int64_t>> strides; /* of each input: outer axes, rows, columns */
  std::vector<Stream> streams;               /* of each stage */
  const Path* path;
  int64_t rows, columns;
  int64_t block_rows, block_columns;
  int64_t whole_bytes, row_bytes;            /* of a temporary */
  int64_t room_bytes;                        /* of all temporaries and views */
  int64_t across, down;                      /* blocks along a row, and down the rows */
  /* Whether an input's elements are gathered before a block, since they lie apart along a row. */
  std::vector<char> gathered;
};

/* A block of rows and columns at one index of the outer axes. */
struct Chain::Block {
  int64_t outer;
  std::vector<int64_t> index;
  int64_t row, rows, column, columns;
};

/* Room for what a stream needs of each slot. */
struct Chain::Places {
  uint8_t** places;
  int64_t* steps;
};

/* A slot within a block: element (r, c) is at data + (r * row_step + c * step) elements. */
struct Chain::View {
  uint8_t* data;
  Kind kind;
  int64_t row_step, step;
  uint8_t* row(int64_t r) const { return data + r * row_step * bytes_of(kind); }
};

int64_t Chain::table_bytes() const {
  return whole_lines(static_cast<int64_t>(slots_.size() * (sizeof(View) + sizeof(int64_t) + sizeof(uint8_t*))));
}

/* ---- instructions one by one ------------------------------------------------------------------------ */

void Chain::execute(const Plan& plan, const Compiled& step, const View* operands, const View& result, int64_t rows,
                    int64_t columns) const {
  const Path& path = *plan.path;
  const View &a = operands[0], &b = operands[1], &c = operands[2];
  if (step.step == Step::sum_last || step.step == Step::amax) {
    auto reduce = step.step == Step::amax ? path.reduce.maximum_rows : path.reduce.sum_rows;
    float* out = reinterpret_cast<float*>(result.data);
    if (a.row_step == columns) {
      reduce(out, reinterpret_cast<const float*>(a.data), rows, columns);
    } else {
      for (int64_t r = 0; r < rows; ++r) reduce(out + r, reinterpret_cast<const float*>(a.row(r)), 1, columns);
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
        /* One operand, next to each other: any other step is taken element by element. */
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

void Chain::run_one(const Plan& plan, int instruction, const View* views, int64_t rows, int64_t columns) const {
  const Compiled& step = code_[static_cast<size_t>(instruction)];
  const size_t number = input_count_ + static_cast<size_t>(instruction);
  View operands[3] = {views[step.operands[0]], views[step.operands[1]], views[step.operands[2]]};
  View result = views[number];
  if (step.step != Step::sum_last && step.step != Step::amax) {
    if (slots_[number].of_rows) {
      /* One element a row: the rows are the row. */
      for (View& view : operands) view.step = view.row_step;
      result.step = 1;
      columns = rows;
      rows = 1;
    } else {
      bool even = result.row_step == columns;
      for (const View& view : operands) {
        even = even && ((view.step == 1 && view.row_step == columns) || (view.step == 0 && view.row_step == 0));
      }
      if (even) {
        columns *= rows;
        rows = 1;
      }
    }
  }
  execute(plan, step, operands, result, rows, columns);
}

/* ---- streams ----------------------------------------------------------------------------------------- */

/* Whether the block was long enough for the path's streams. */
bool Chain::run_stream(const Plan& plan, size_t stage, const View* views, Places room, int64_t rows,
                       int64_t columns) const {
  const std::vector<int>& slots = stages_[stage].slots;
  bool even = true;
  for (int slot : slots) {
    const View& view = views[slot];
    even = even && view.row_step == (slots_[static_cast<size_t>(slot)].of_rows ? 0 : columns);
  }
  if (even) {
    columns *= rows;
    rows = 1;
  }
  const StreamPaths& paths = plan.path->stream;
  if (columns < paths.narrow.group) return false;
  for (size_t i = 0; i < slots.size(); ++i) {
    const View& view = views[slots[i]];
    room.places[i] = view.data;
    room.steps[i] = view.row_step * bytes_of(view.kind);
  }
  const StreamRows span = {room.places, room.steps, static_cast<int>(slots.size()), rows};
  const Stream& stream = plan.streams[stage];
  if (columns >= paths.wide.group) {
    paths.wide.run(stream.wide.data(), span, columns);
  } else {
    paths.narrow.run(stream.narrow.data(), span, columns);
  }
  return true;
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

/* What stays the same from block to block: kinds, steps, and where temporaries lie. */
void Chain::see_piece(const Plan& plan, uint8_t* rooms, View* views) const {
  uint8_t* row_rooms = rooms + whole_rooms_ * plan.whole_bytes;
  uint8_t* gathered = row_rooms + row_rooms_ * plan.row_bytes;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    views[i] = {nullptr, slot.kind, slot.of_rows ? 1 : plan.block_columns, slot.of_rows ? 0 : 1};
    if (i < input_count_) {
      const auto& strides = plan.strides[i];
      if (plan.gathered[i]) {
        views[i].data = gathered;
        gathered += plan.whole_bytes;
      } else {
        views[i].row_step = strides[strides.size() - 2];
        views[i].step = strides[strides.size() - 1];
      }
    } else if (slot.output >= 0) {
      if (!slot.of_rows) views[i].row_step = plan.columns;
    } else {
      views[i].data = slot.of_rows ? row_rooms + slot.room * plan.row_bytes : rooms + slot.room * plan.whole_bytes;
    }
  }
}

/* Where inputs and outputs lie for one block; operands that step along the row are gathered. */
void Chain::see_block(const Plan& plan, const Block& block, View* views) const {
  const size_t axes = plan.outer.size();
  for (size_t i = 0; i < input_count_; ++i) {
    const int64_t* strides = plan.strides[i].data();
    int64_t offset = block.row * strides[axes] + block.column * strides[axes + 1];
    for (size_t axis = 0; axis < axes; ++axis) offset += block.index[axis] * strides[axis];
    const int64_t bytes = bytes_of(slots_[i].kind);
    uint8_t* data = static_cast<uint8_t*>(const_cast<void*>((*plan.inputs)[i])) + offset * bytes;
    if (plan.gathered[i]) {
      auto run = bytes == 1 ? gather<uint8_t> : bytes == 4 ? gather<uint32_t> : gather<uint64_t>;
      run(views[i].data, data, strides[axes], strides[axes + 1], block.rows, block.columns);
    } else {
      views[i].data = data;
    }
  }
  const int64_t flat_row = block.outer * plan.rows + block.row;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    View& view = views[outputs_[i]];
    const bool of_rows = slots_[static_cast<size_t>(outputs_[i])].of_rows;
    const int64_t at = of_rows ? flat_row : flat_row * plan.columns + block.column;
    view.data = static_cast<uint8_t*>((*plan.outputs)[i]) + at * bytes_of(view.kind);
  }
  if (block.columns == plan.block_columns) return;
  /* The last block of a row is narrower, and so are its temporaries. */
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool is_narrow = i < input_count_ ? plan.gathered[i] != 0 : slots_[i].output < 0 && !slots_[i].of_rows;
    if (is_narrow) views[i].row_step = block.columns;
  }
}

void Chain::run_block(const Plan& plan, const Block& block, const View* views, Places room) const {
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    for (int instruction : stage.before) run_one(plan, instruction, views, block.rows, block.columns);
    if (stage.streamed.empty() || run_stream(plan, s, views, room, block.rows, block.columns)) continue;
    for (int instruction : stage.streamed) run_one(plan, instruction, views, block.rows, block.columns);
  }
}

/* Blocks [begin, end) of all. */
void Chain::run_piece(const Plan& plan, int64_t begin, int64_t end) const {
  uint8_t* buffer = static_cast<uint8_t*>(thread_buffer(SLOT_ROOMS, static_cast<uint64_t>(plan.room_bytes)));
  View* views = reinterpret_cast<View*>(buffer);
  const Places room = {reinterpret_cast<uint8_t**>(views + slots_.size()),
                       reinterpret_cast<int64_t*>(views + slots_.size()) + slots_.size()};
  Block block{};
  block.index.resize(plan.outer.size());
  bool is_narrow = true;
  for (int64_t at = begin; at < end; ++at) {
    block.column = at % plan.across * plan.block_columns;
    block.row = at / plan.across % plan.down * plan.block_rows;
    block.outer = at / plan.across / plan.down;
    block.rows = std::min(plan.block_rows, plan.rows - block.row);
    block.columns = std::min(plan.block_columns, plan.columns - block.column);
    int64_t rest = block.outer;
    for (size_t axis = plan.outer.size(); axis-- > 0;) {
      block.index[axis] = rest % plan.outer[axis];
      rest /= plan.outer[axis];
    }
    if (is_narrow) see_piece(plan, buffer + table_bytes(), views);
    is_narrow = block.columns != plan.block_columns;
    see_block(plan, block, views);
    run_block(plan, block, views, room);
  }
}

/* ---- the whole shape ----------------------------------------------------------------------------------- */

void Chain::run(const std::vector<void*>& outputs, const std::vector<const void*>& inputs, const Sizes& shape,
                const std::vector<Sizes>& strides) const {
  for (int64_t size : shape) {
    if (size == 0) return;
  }
  Plan plan{};
  plan.outputs = &outputs;
  plan.inputs = &inputs;
  plan.outer = shape;
  plan.strides = strides;
  plan.path = &current_path();
  for (const Stage& stage : stages_) {
    Stream& stream = plan.streams.emplace_back();
    for (const StreamPlan& step : stage.plan) {
      stream.wide.push_back({plan.path->stream.wide.step(step.code), step.slot, step.mask});
      stream.narrow.push_back({plan.path->stream.narrow.step(step.code), step.slot, step.mask});
    }
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
  plan.block_columns = reduces_ ? plan.columns : std::min(plan.columns, CHAIN_BLOCK);
  plan.block_rows = std::clamp<int64_t>(CHAIN_BLOCK / plan.block_columns, 1, plan.rows);
  int64_t outer = 1, gathered = 0;
  for (int64_t size : plan.outer) outer *= size;
  for (size_t i = 0; i < input_count_; ++i) {
    plan.gathered.push_back(!slots_[i].of_rows && plan.strides[i].back() != 1 && plan.columns > 1);
    gathered += plan.gathered.back();
  }
  const int64_t widest = gathered ? std::max<int64_t>(element_bytes_, 8) : element_bytes_;
  plan.whole_bytes = whole_lines(plan.block_rows * plan.block_columns * widest) + APART;
  plan.row_bytes = whole_lines(plan.block_rows * widest);
  plan.room_bytes =
      table_bytes() + (whole_rooms_ + gathered) * plan.whole_bytes + row_rooms_ * plan.row_bytes;
  plan.across = (plan.columns + plan.block_columns - 1) / plan.block_columns;
  plan.down = (plan.rows + plan.block_rows - 1) / plan.block_rows;
  const int64_t work = plan.block_rows * plan.block_columns * static_cast<int64_t>(code_.size() + 1);
  parallel_for(outer * plan.down * plan.across, std::max<int64_t>(1, 4 * PIECE / work),
               [&](int64_t begin, int64_t end) { run_piece(plan, begin, end); });
}

}  // namespace identic

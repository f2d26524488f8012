/* Plans a stream: the order of its operators, and which values pass through memory. */
#include <algorithm>

#include "fused/stream.h"

namespace identic {
namespace {

bool is_unary(const StreamOperator& one) { return one.code < STREAM_BINARY; }
bool is_where(const StreamOperator& one) { return one.code >= STREAM_WHERE; }
Binary binary_of(const StreamOperator& one) { return static_cast<Binary>((one.code - STREAM_BINARY) / 4); }
bool is_comparison(const StreamOperator& one) {
  return !is_unary(one) && !is_where(one) && binary_of(one) >= BINARY_EQ;
}

/* Operands that are numbers: all but the mask. */
const int* numbers(const StreamOperator& one) { return one.operands + (is_where(one) ? 1 : 0); }
int number_count(const StreamOperator& one) { return is_unary(one) ? 1 : 2; }
int slot_count(const StreamOperator& one) { return is_unary(one) ? 1 : is_where(one) ? 3 : 2; }

/* Whether the running value can be an operand: not where both operands are one value, other than in a square. */
bool takes(const StreamOperator& one, int running) {
  const int* slots = numbers(one);
  if (is_unary(one)) return slots[0] == running;
  if (slots[0] == slots[1]) return slots[0] == running && one.code == STREAM_BINARY + 4 * BINARY_MUL;
  return slots[0] == running || slots[1] == running;
}

/* The value that runs on after an operator: a comparison leaves its left operand. */
int left_running(const StreamOperator& one, int running) {
  if (!is_comparison(one)) return one.result;
  return takes(one, running) ? running : one.operands[0];
}

/* Operators whose operands are ready, those that use the running value first, else in their order. */
void order(std::vector<StreamOperator>& operators) {
  std::vector<StreamOperator> waiting(operators), ordered;
  int running = -1;
  auto is_ready = [&](const StreamOperator& one) {
    for (int i = 0; i < slot_count(one); ++i) {
      for (const StreamOperator& other : waiting) {
        if (other.result == one.operands[i]) return false;
      }
    }
    return true;
  };
  while (!waiting.empty()) {
    auto next = waiting.end();
    for (auto one = waiting.begin(); one != waiting.end(); ++one) {
      if (!is_ready(*one)) continue;
      if (next == waiting.end()) next = one;
      if (takes(*one, running)) {
        next = one;
        break;
      }
    }
    running = left_running(*next, running);
    ordered.push_back(*next);
    waiting.erase(next);
  }
  operators = ordered;
}

/* Arithmetic may leave a NaN that is not the canonical one; the other operators do not. */
bool leaves_any_nan(const StreamOperator& one) {
  if (is_where(one) || is_comparison(one)) return false;
  if (is_unary(one)) {
    const int unary = one.code - STREAM_UNARY;
    return unary == UNARY_NEG || unary == UNARY_ABS || unary == UNARY_SQRT || unary == UNARY_RSQRT;
  }
  return binary_of(one) != BINARY_MAXIMUM && binary_of(one) != BINARY_MINIMUM;
}

/* Slots that are read from memory while the operators run in this order. */
std::vector<bool> read_from_memory(const std::vector<StreamOperator>& operators, size_t slots) {
  std::vector<bool> found(slots);
  int running = -1;
  for (const StreamOperator& one : operators) {
    const bool taken = takes(one, running);
    for (int i = 0; i < number_count(one); ++i) {
      if (!taken || numbers(one)[i] != running) found[static_cast<size_t>(numbers(one)[i])] = true;
    }
    running = left_running(one, running);
  }
  return found;
}

/* The place of a slot among those in use. */
int numbered(int slot, std::vector<int>& slots) {
  if (slot < 0) return slot;
  const auto found = std::find(slots.begin(), slots.end(), slot);
  if (found != slots.end()) return static_cast<int>(found - slots.begin());
  slots.push_back(slot);
  return static_cast<int>(slots.size()) - 1;
}

}  // namespace

std::vector<StreamPlan> plan_stream(std::vector<StreamOperator>& operators, const std::vector<StreamValue>& values,
                                    std::vector<int>& slots) {
  order(operators);
  const std::vector<bool> in_memory = read_from_memory(operators, values.size());
  std::vector<StreamPlan> plan;
  int running = -1;
  auto spread = [&](int slot) { return values[static_cast<size_t>(slot)].of_rows ? 1 : 0; };
  for (const StreamOperator& one : operators) {
    const int* operands = numbers(one);
    if (!takes(one, running)) {
      plan.push_back({STREAM_LOAD + spread(operands[0]), operands[0], -1});
      running = operands[0];
    }
    if (is_unary(one)) {
      plan.push_back({one.code, -1, -1});
    } else if (operands[0] == operands[1] && one.code == STREAM_BINARY + 4 * BINARY_MUL) {
      plan.push_back({STREAM_SQUARE, -1, -1});
    } else {
      const bool reversed = operands[0] != running;
      const int other = operands[reversed ? 0 : 1];
      const int mask = is_where(one) ? one.operands[0] : is_comparison(one) ? one.result : -1;
      plan.push_back({one.code + (reversed ? 2 : 0) + spread(other), other, mask});
    }
    if (is_comparison(one)) continue;
    running = one.result;
    const StreamValue& value = values[static_cast<size_t>(one.result)];
    const bool stored = value.kept || in_memory[static_cast<size_t>(one.result)];
    const bool made_canonical = value.clean && leaves_any_nan(one);
    if (stored) {
      plan.push_back({made_canonical ? STREAM_STORE_CANONICAL : STREAM_STORE, one.result, -1});
    } else if (made_canonical) {
      plan.push_back({STREAM_CANONICAL, -1, -1});
    }
  }
  plan.push_back({STREAM_END, -1, -1});
  for (StreamPlan& step : plan) {
    step.slot = numbered(step.slot, slots);
    step.mask = numbered(step.mask, slots);
  }
  return plan;
}

}  // namespace identic

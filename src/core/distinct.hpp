// Distinct values, numbered: what labels and columns of text become. O(n + c log c) time for c distinct values among n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace vicinal::core {

/// Distinct values, numbered as they come: a hash table of their numbers, at most half full.
template <class Value>
class Distinct {
 public:
  /// `poll` is called at least every some thousand steps.
  explicit Distinct(std::function<void()> poll) : poll_(std::move(poll)), slots_(1024, -1) {}

  std::int64_t number_of(Value value) {
    step();
    const std::size_t slot = slot_of(value);
    if (slots_[slot] >= 0) return slots_[slot];
    const auto number = std::ssize(values_);
    slots_[slot] = number;
    values_.push_back(value);
    if (2 * values_.size() > slots_.size()) grow();
    return number;
  }
  [[nodiscard]] Value value(std::int64_t number) const { return values_[static_cast<std::size_t>(number)]; }
  /// The numbers in ascending order of the values.
  [[nodiscard]] std::vector<std::int64_t> sorted() {
    slots_ = {};
    std::vector<std::int64_t> order(values_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](std::int64_t x, std::int64_t y) {
      step();
      return value(x) < value(y);
    });
    return order;
  }
  /// Counts a step of the caller's.
  void step() {
    constexpr std::int64_t kSteps = std::int64_t{1} << 14;
    if (++steps_ % kSteps == 0) poll_();
  }

 private:
  /// Where the value is, or would be. The hash is mixed, because that of a whole number may be the number.
  [[nodiscard]] std::size_t slot_of(const Value& value) const {
    std::size_t slot = (std::hash<Value>()(value) * 0x9e3779b97f4a7c15U >> 20) & (slots_.size() - 1);
    while (slots_[slot] >= 0 && this->value(slots_[slot]) != value) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void grow() {
    slots_.assign(2 * slots_.size(), -1);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      step();
      slots_[slot_of(values_[i])] = static_cast<std::int64_t>(i);
    }
  }

  std::function<void()> poll_;
  std::vector<std::int64_t> slots_;
  std::vector<Value> values_;
  std::int64_t steps_ = 0;
};

}  // namespace vicinal::core

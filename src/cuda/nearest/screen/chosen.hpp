// The rows of a table that a screen multiplies: all of them, those that a filter admits or that lie in a ball, and of
// rows that are equal only one. What is not chosen costs nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// Chosen rows are numbered from 0; a number stands for one row, or for several equal ones.
struct Chosen {
  std::int64_t count = 0;
  const std::uint32_t* rows = nullptr;     ///< [count] row of the table, of equal ones the first; null: the number
  const std::uint32_t* firsts = nullptr;   ///< [count] where the equal rows begin among the members
  const std::uint32_t* sizes = nullptr;    ///< [count] and how many they are
  const std::uint32_t* members = nullptr;  ///< rows of the table, ascending among equal ones; null: no two are equal

  [[nodiscard]] __host__ __device__ bool grouped() const { return members != nullptr; }
  [[nodiscard]] __device__ std::int64_t row(std::int64_t number) const {
    return rows != nullptr ? static_cast<std::int64_t>(rows[number]) : number;
  }
  /// How many of a number's rows have a smaller id.
  [[nodiscard]] __device__ std::int64_t rows_before(std::int64_t number, std::int64_t id) const {
    const std::uint32_t* equal = members + firsts[number];
    std::int64_t low = 0;
    std::int64_t high = sizes[number];
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (static_cast<std::int64_t>(equal[middle]) < id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  /// Whether a row of the table is among a number's rows.
  [[nodiscard]] __device__ bool has(std::int64_t number, std::int64_t id) const {
    if (id < 0) return false;
    if (!grouped()) return row(number) == id;
    const std::int64_t place = rows_before(number, id);
    return place < static_cast<std::int64_t>(sizes[number]) &&
           static_cast<std::int64_t>(members[firsts[number] + place]) == id;
  }
};

/// Which of the rows that a number stands for a query may have as neighbors. Filters are not asked: what they leave out
/// is not chosen.
struct Available {
  std::int64_t own;       ///< a row that it may not have, or below 0
  std::int64_t excluded;  ///< another one, or below 0

  __device__ Available(const Eligible& eligible, std::int64_t query)
      : own(eligible.own_row(query)), excluded(eligible.excluded_row(query)) {
    if (excluded == own) excluded = -1;
  }
  /// How many.
  [[nodiscard]] __device__ std::int64_t of(const Chosen& chosen, std::int64_t number) const {
    const std::int64_t size = chosen.grouped() ? static_cast<std::int64_t>(chosen.sizes[number]) : 1;
    return size - (chosen.has(number, own) ? 1 : 0) - (chosen.has(number, excluded) ? 1 : 0);
  }
  [[nodiscard]] __device__ bool any(const Chosen& chosen, std::int64_t number) const {
    if (chosen.grouped() && chosen.sizes[number] > 2) return true;
    return of(chosen, number) > 0;
  }
};

/// Owns what a `Chosen` points to.
struct ChosenRows {
  Buffer<std::uint32_t> rows;
  Buffer<std::uint32_t> firsts;
  Buffer<std::uint32_t> sizes;
  Buffer<std::uint32_t> members;  ///< empty where they are those of what was chosen from, which must outlive this
  Chosen view;
};

/// Of the rows chosen before those with flags[number] != 0. Waits for the device.
ChosenRows choose(const Engine& engine, const Chosen& from, const std::uint8_t* flags);
/// Of n rows those that the filter admits, whose bits are in order of the ids, the first of which is `first_row`.
ChosenRows choose_filtered(const Engine& engine, std::int64_t n, const std::uint64_t* filter, std::int64_t first_row);
/// Equal rows once, -0 and 0 told apart; nothing where fewer than an eighth would go. Waits for the device.
std::optional<ChosenRows> choose_distinct(const Engine& engine, const Rows& table, const Chosen& from);
/// Bytes that it takes at most, what it returns included, and those that it returns.
std::uint64_t distinct_scratch(std::int64_t count);
std::uint64_t distinct_bytes(std::int64_t count);
/// Bytes of a choice among so many.
std::uint64_t choice_bytes(std::int64_t count);

}  // namespace vicinal::cuda

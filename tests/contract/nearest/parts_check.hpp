// What the tests of parts have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "vicinal/parts.hpp"

namespace vicinal::contract {

/// Parts as sources.
inline std::vector<PartSource> sources_of(const std::vector<NeighborPart>& parts) {
  std::vector<PartSource> sources;
  for (const NeighborPart& part : parts) sources.push_back(source_of(Context::cpu(), part));
  return sources;
}

/// Rows from `begin` on as a filter of their own.
inline std::vector<std::uint64_t> filter_from(const std::vector<std::uint64_t>& words, std::int64_t begin,
                                              std::int64_t end) {
  if (words.empty()) return {};
  std::vector<std::uint64_t> here(static_cast<std::size_t>((end - begin + 63) / 64), 0);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint64_t bit = words[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1;
    here[static_cast<std::size_t>((i - begin) / 64)] |= bit << ((i - begin) % 64);
  }
  if ((end - begin) % 64 > 0) here.back() |= ~std::uint64_t{0} << ((end - begin) % 64);  // which are no rows
  return here;
}

/// Rows that permute the same two-decimal values.
inline std::vector<double> permuted_decimals(std::int64_t n, std::int64_t d, std::uint64_t seed) {
  std::mt19937_64 draws(seed);
  std::vector<double> values;
  for (std::int64_t j = 0; j < d; ++j) values.push_back(static_cast<double>(draws() % 1000) / 100);
  std::vector<double> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    std::shuffle(values.begin(), values.end(), draws);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  return rows;
}

}  // namespace vicinal::contract

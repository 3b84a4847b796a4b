// Which rows are embedded together, and where rows are put that lead to several closed classes (contract clause 17).
#pragma once

#include <cstdint>
#include <vector>

#include "core/raw_vector.hpp"
#include "solver/rows.hpp"
#include "solver/weights.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::ops {

struct LlePartition {
  std::int64_t components = 0;                     ///< connected components of the neighbor graph
  std::vector<std::int64_t> component;             ///< [pieces] each piece's component
  std::vector<std::int64_t> classes;               ///< [components] closed classes; empty where the variant has none
  core::RawVector<solver::Point> round;            ///< [n] in which a row is placed, 0: it is embedded; empty: all are
  std::vector<std::vector<solver::Point>> rounds;  ///< the rows of each round from 1 on, ascending

  [[nodiscard]] std::int64_t pieces() const noexcept { return static_cast<std::int64_t>(component.size()); }
  [[nodiscard]] bool embeds(std::int64_t row) const noexcept { return round.empty() || round[row] == 0; }
};

/// Fills [n] the number of each row's piece: connected components, of `standard` divided into closed classes with the
/// rows that lead to each of them alone. O(n k).
LlePartition pieces_of(const Context& ctx, const solver::LocalRows& a, LleVariant variant,
                       std::vector<std::int64_t>& piece);

/// Puts the rows that are not embedded where their weights say. Throws `bad_data` naming a row whose weights are not
/// determined.
void place_rows(const Context& ctx, const solver::LocalTask& task, const LlePartition& parts,
                const std::vector<std::int64_t>& piece, std::vector<double>& embedding);

}  // namespace vicinal::ops

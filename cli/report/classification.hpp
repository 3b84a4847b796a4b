// The report of `vicinal classify`: one page with the scores, where they come from, and the rows that were hardest.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/row_names.hpp"
#include "nearest/scores.hpp"
#include "report/neighbor_profile.hpp"
#include "report/picture.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli::report {

/// One output of one classification; everything is borrowed.
struct Classification {
  std::string name;  ///< of the output, when there are several
  const Labels* labels = nullptr;
  const Vote* vote = nullptr;  ///< with probabilities
  std::span<const std::int32_t> truth;
  const Scores* scores = nullptr;
};

/// Neighbors that are shown beside a row.
inline constexpr std::int64_t kNeighborsDrawn = 10;

struct ClassificationReport {
  std::string train_file;
  std::string test_file;
  std::string weights;
  double radius = 0;  ///< where rows have no fixed number of neighbors
  ImageShape image;
  double seconds = 0;
  const NeighborProfile* profile = nullptr;  ///< with kNeighborsDrawn nearest ones of each row
  const TableView* train = nullptr;
  const TableView* test = nullptr;
  std::span<const Classification> outputs;
  RowNames asked;  ///< of the rows that were answered for
};

std::string render(const ClassificationReport& report);

}  // namespace vicinal::cli::report

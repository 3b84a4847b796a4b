// How well scores find what labels call an outlier: classes among the rows with the largest scores, the ROC curve and
// the area under it, average precision and precision at n.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {

/// Rows of all other classes against the one that is normal.
struct Ranking {
  std::int64_t outliers = 0;  ///< rows of the other classes
  double roc_auc = 0;
  double average_precision = 0;
  double precision_at_n = 0;  ///< n: the number of outliers
  RocCurve curve;
};

struct Detection {
  struct Class {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t found = 0;  ///< of them, among the top
  };
  double top_share = 0;
  std::int64_t top_rows = 0;          ///< floor(share n), at least 1
  std::vector<Class> classes;         ///< those that occur, in ascending order of their labels
  std::optional<std::string> normal;  ///< the class that is none of outliers, where it is known
  std::optional<Ranking> ranking;     ///< where it is known, and there are rows of it and of others
};

/// `ranked` are the rows from the largest score down. `normal`: the name of that class; empty: the larger of two
/// classes, the first of two as large, and unknown for any other number. O(n log n). Throws `bad_data` where no row has
/// that class.
Detection detect(const Context& ctx, const Labels& labels, std::span<const double> scores,
                 std::span<const std::int64_t> ranked, double top_share, const std::string& normal);

}  // namespace vicinal::cli

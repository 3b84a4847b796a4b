// How well scores find what labels call an outlier: classes among the rows with the largest scores, and the area under
// the ROC curve.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {

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
  std::optional<double> auc;          ///< of all other classes against it: ties count half
};

/// `ranked` are the rows from the largest score down. `normal`: the name of that class; empty: the larger of two
/// classes, the first of two as large, and unknown for any other number. O(n log n). Throws `bad_data` where no row has
/// that class.
Detection detect(const Context& ctx, const Labels& labels, std::span<const double> scores,
                 std::span<const std::int64_t> ranked, double top_share, const std::string& normal);

}  // namespace vicinal::cli

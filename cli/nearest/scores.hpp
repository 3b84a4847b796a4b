// How good predictions are, with the names of the classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/metrics.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {

struct Scores : ClassificationScores {
  std::vector<std::string> names;       ///< [c] of the classes
  std::vector<std::int64_t> confusion;  ///< [c, c] true x predicted; empty for more than 1000 classes
};

/// `truth` and `predicted` are codes of `labels`' classes; O(m + c^2).
Scores score(const Context& ctx, const Labels& labels, std::span<const std::int32_t> truth,
             std::span<const std::int32_t> predicted);

/// The labels of the test rows as codes of the training labels' classes. Throws `bad_data` naming the first test row
/// whose label does not occur in training.
std::vector<std::int32_t> codes_among(const Labels& training, const Labels& test, const std::string& file);

/// The labels with one more class, of which there are no rows, unless it is there already. Throws `invalid_argument`
/// where classes are whole numbers and the name is none.
Labels with_class(const Labels& labels, const std::string& name);
/// The code of a class, or -1.
std::int32_t code_of(const Labels& labels, const std::string& name);

}  // namespace vicinal::cli

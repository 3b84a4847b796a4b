// How good predictions are: accuracy, confusion matrix, precision, recall and F1 a class.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vicinal/vote.hpp"

namespace vicinal::cli {

/// A class of which nothing was predicted has precision 0, one that does not occur has recall 0.
struct ClassScore {
  std::string name;
  std::int64_t support = 0;    ///< rows that are of this class
  std::int64_t predicted = 0;  ///< rows that were said to be
  std::int64_t right = 0;      ///< rows that are both
  double precision = 0;
  double recall = 0;
  double f1 = 0;
};

struct Scores {
  std::int64_t rows = 0;
  std::int64_t right = 0;
  double accuracy = 0;
  double macro_f1 = 0;                  ///< mean F1 of the classes that occur
  std::vector<ClassScore> classes;      ///< [c]
  std::vector<std::int64_t> confusion;  ///< [c, c] true x predicted; empty for more than 1000 classes
};

/// `truth` and `predicted` are codes of `labels`' classes; O(m + c^2).
Scores score(const Labels& labels, std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted);

/// The labels of the test rows as codes of the training labels' classes. Throws `bad_data` naming the first test row
/// whose label does not occur in training.
std::vector<std::int32_t> codes_among(const Labels& training, const Labels& test, const std::string& file);

/// The labels with one more class, of which there are no rows, unless it is there already. Throws `invalid_argument`
/// where classes are whole numbers and the name is none.
Labels with_class(const Labels& labels, const std::string& name);
/// The code of a class, or -1.
std::int32_t code_of(const Labels& labels, const std::string& name);

}  // namespace vicinal::cli

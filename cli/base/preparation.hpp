// The options --categories, --text, --scale and --missing.
#pragma once

#include <string>
#include <vector>

#include "base/missing.hpp"
#include "base/parser.hpp"
#include "vicinal/io.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal::cli {

struct PreparationArguments {
  std::string categories = "none";
  std::string scale = "none";
  MissingArguments missing;
  std::vector<std::string> text;

  /// Whether columns are changed.
  [[nodiscard]] bool any() const { return categories != "none" || scale != "none" || missing.fills(); }
  [[nodiscard]] PreparationOptions options() const;
  /// Has columns of text read where --categories is given. Throws for --text without it.
  void ask_for_texts(ReadOptions& reading) const;
};

void add_preparation_options(const Parser& command, PreparationArguments& arguments);

/// What became of columns of text, for readers: "ordinal", "one-hot"; empty where there are none.
std::string texts_as(const Preparation& preparation);

}  // namespace vicinal::cli

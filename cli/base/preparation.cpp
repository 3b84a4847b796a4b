// See preparation.hpp.
#include "base/preparation.hpp"

#include <algorithm>

namespace vicinal::cli {

PreparationOptions PreparationArguments::options() const {
  return {.scaling = scaling_from(scale),
          .texts = categories == "onehot" ? TextCodes::one_hot : TextCodes::ordinal,
          .missing = missing.options()};
}

void add_preparation_options(const Parser& command, PreparationArguments& arguments) {
  const std::string group = "Preparing columns";
  command
      .add_choice(
          "--categories", arguments.categories, {"none", "ordinal", "onehot"},
          "Text columns; ordinal: numbers in the order of the sorted texts of TRAIN; onehot: one column per text")
      .group(group);
  command
      .add_choice("--scale", arguments.scale, {"none", "standard", "minmax"},
                  "Scale columns: standard: mean 0 and deviation 1; minmax: 0 to 1; fitted on TRAIN")
      .group(group);
  add_missing_options(command, arguments.missing);
}

std::string texts_as(const Preparation& preparation) {
  if (!preparation.has_texts()) return {};
  const auto& columns = preparation.columns();
  const bool one_hot =
      std::any_of(columns.begin(), columns.end(), [](const Preparation::Column& column) { return column.one_hot; });
  return one_hot ? "one-hot" : "ordinal";
}

}  // namespace vicinal::cli

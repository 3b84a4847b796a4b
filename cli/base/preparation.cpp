// See preparation.hpp.
#include "base/preparation.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "vicinal/error.hpp"

namespace vicinal::cli {

PreparationOptions PreparationArguments::options() const {
  return {.scaling = scaling_from(scale),
          .texts = categories == "onehot" ? TextCodes::one_hot : TextCodes::ordinal,
          .missing = missing.options()};
}

void PreparationArguments::ask_for_texts(ReadOptions& reading) const {
  if (categories == "none" && !text.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--text: column '{}' becomes numbers by --categories ordinal or onehot only", text[0]));
  }
  reading.find_text = categories != "none";
  reading.text = text;
}

void add_preparation_options(const Parser& command, PreparationArguments& arguments) {
  const std::string group = "Preparing columns";
  command
      .add_choice("--categories", arguments.categories, {"none", "ordinal", "onehot"},
                  "Text columns; ordinal: numbers in the order of the sorted texts of TRAIN or TABLE; onehot: one "
                  "column per text")
      .group(group);
  command
      .add_option("--text", arguments.text,
                  "Column to read as text, by name or position; may be repeated [columns with text that repeats]")
      .type_name("COLUMN")
      .repeatable()
      .group(group);
  command
      .add_choice("--scale", arguments.scale, {"none", "standard", "minmax"},
                  "Scale columns: standard: mean 0 and deviation 1; minmax: 0 to 1; fitted on TRAIN or TABLE")
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

// See model_preparation.hpp.
#include "model_preparation.hpp"

#include <algorithm>

#include "input.hpp"

namespace vicinal::cli {

std::optional<Preparation> preparation_in(const Context& ctx, const std::string& model, std::int64_t d) {
  const FileInfo info = describe_file(ctx, model);
  const bool there = std::any_of(info.arrays.begin(), info.arrays.end(),
                                 [](const FileInfo::Array& array) { return array.name == kPreparationArray; });
  if (!there) return std::nullopt;
  ReadOptions reading;
  reading.member = kPreparationArray;
  const Table bytes = read_table(ctx, model, reading);
  std::string text;
  for (std::int64_t i = 0; i < bytes.view.rows(); ++i) {
    text += static_cast<char>(static_cast<unsigned char>(value_at(bytes.view, i, 0)));
  }
  return Preparation::from_text(text, d, model);
}

ReadOptions reading_like(const Context& ctx, const std::string& file, ReadOptions reading,
                         const Preparation& preparation) {
  if (!preparation.has_texts()) return reading;
  const FileInfo info = describe_file(ctx, file);
  if (info.format == FileFormat::csv) preparation.find_texts(reading, info.columns, reading.drop, file);
  return reading;
}

}  // namespace vicinal::cli

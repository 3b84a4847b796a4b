// What `vicinal lle` writes and says of an embedding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "base/row_names.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/lle_quality.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli {

/// An embedding, what was asked of it, and other rows among it.
struct EmbeddedRows {
  Lle found;
  std::optional<LleQuality> quality;
  std::optional<LleParameterFit> fit;         ///< of known parameters
  std::vector<std::string> parameters;        ///< their names; empty where the file has none
  std::optional<std::vector<double>> placed;  ///< [m, dim] other rows, which are written instead
  std::vector<std::int64_t> numbers;          ///< of the rows in their file, where some were left out; else empty
  std::int64_t dropped = 0;                   ///< how many were
  RowNames names;                             ///< of the rows that are written
  const Labels* labels = nullptr;             ///< of these; borrowed, may be missing
  std::string label_name;                     ///< of the column that they come from; may be empty

  /// The name of a known parameter, or its number.
  [[nodiscard]] std::string parameter_name(std::size_t parameter) const;
};

/// How far each eigenvalue is from the next one, as a share of that: near 0, the two vectors can be turned into each
/// other, and only the plane that they span is told.
std::vector<double> eigenvalue_gaps(const LlePiece& piece);

/// Rows judged by their condition: decade e counts those from 10^e to below 10^(e + 1).
struct ConditionCounts {
  double largest = 0;
  double median = 0;
  std::int64_t infinite = 0;
  int first = 0;                      ///< decade of counts[0]
  std::vector<std::int64_t> decades;  ///< of what is finite
};
ConditionCounts count_conditions(const LleQuality& quality);

/// What the count of a piece's eigenvalues says, or why nothing was counted.
std::string count_sentence(const LlePiece& piece);

/// Sentences on what a reader should not miss: skipped or clustered eigenvalues, further zeros, columns that live on
/// few rows, pieces.
std::vector<std::string> embedding_warnings(const Lle& found);

/// .npy, .npz (embedding, piece, placed, singular_values; rows where some were left out; row_ids and labels where there
/// are any, these as texts unless they are whole numbers) or .csv (row, y0, .., and the label where there are any) by
/// the path's ending; nothing for an empty path.
void write_embedding(const Context& ctx, const std::filesystem::path& path, const EmbeddedRows& rows);

/// Fields of the command's JSON.
void add_embedding(Json& json, const EmbeddedRows& rows);
/// The table on stdout: a line for each column of the first pieces; then trust, where it was judged.
std::string embedding_text(const EmbeddedRows& rows);

}  // namespace vicinal::cli

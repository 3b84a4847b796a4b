// What `vicinal lof` tells of its scores: files, lines for a person, JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "base/row_names.hpp"
#include "lof/detection.hpp"
#include "lof/outlying.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal::cli {

/// Rows with their scores; what is borrowed may be missing.
struct ScoredRows {
  const Table* table = nullptr;  ///< prepared
  RowNames names;
  std::vector<double> scores;  ///< [m]
  std::vector<std::int64_t> ranked;
  std::int64_t outliers = 0;  ///< above the threshold
  std::vector<OutlyingRow> top;
  std::int64_t dropped = 0;  ///< rows of TRAIN that were left out
  const Labels* labels = nullptr;
  std::optional<Detection> detection;
};

/// .csv: lines `row,score,rank,outlier`, rank 1 the most outlying, outlier 1 above the threshold, else 0; .npy: scores
/// [m]; .npz: scores, threshold and outliers, rows where some were left out, and row_ids where rows have ids. Nothing
/// for an empty path.
void write_scores(const Context& ctx, const std::filesystem::path& path, const Lof& lof, const ScoredRows& scored);

/// The most outlying rows and, where there are labels, what was found of each class, as tables.
std::string scores_text(const Lof& lof, const ScoredRows& scored, const Preparation& preparation);

/// The same as JSON. Infinity, which JSON lacks, is the text "inf".
void add_scores(Json& json, const Lof& lof, const ScoredRows& scored, const Preparation& preparation);

}  // namespace vicinal::cli

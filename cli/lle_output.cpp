// See lle_output.hpp.
#include "lle_output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/html.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kPiecesTold = 10;

std::vector<double> eigenvalues_of(const LlePiece& piece) {
  std::vector<double> values;
  for (const double value : piece.singular_values) values.push_back(value * value);
  return values;
}

Json to_json(const LlePiece& piece) {
  return {{"rows", piece.rows},
          {"solver", name_of(piece.solver)},
          {"singular_values", piece.singular_values},
          {"eigenvalues", eigenvalues_of(piece)},
          {"gaps", eigenvalue_gaps(piece)},
          {"next", piece.next},
          {"residuals", piece.residuals},
          {"angles", piece.angles},
          {"localization", piece.localization},
          {"norm", piece.norm},
          {"counted", piece.counted < 0 ? Json(nullptr) : Json(piece.counted)},
          {"iterations", piece.iterations},
          {"fill", piece.fill},
          {"flops", piece.flops}};
}

Json to_json(const LleQuality& quality) {
  const ConditionCounts counts = count_conditions(quality);
  Json decades = Json::array();
  for (std::size_t i = 0; i < counts.decades.size(); ++i) {
    decades.push_back({{"from", std::pow(10.0, counts.first + static_cast<int>(i))}, {"rows", counts.decades[i]}});
  }
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"k", quality.k},
          {"rows", quality.rows.size()},
          {"trustworthiness", quality.trustworthiness},
          {"continuity", quality.continuity},
          {"condition",
           {{"largest", number(counts.largest)},
            {"median", number(counts.median)},
            {"infinite", counts.infinite},
            {"decades", decades}}}};
}

}  // namespace

std::vector<double> eigenvalue_gaps(const LlePiece& piece) {
  std::vector<double> gaps;
  for (std::size_t c = 0; c < piece.singular_values.size(); ++c) {
    const bool last = c + 1 == piece.singular_values.size();
    const double above = last ? piece.next : piece.singular_values[c + 1];
    const double share = above > 0 ? piece.singular_values[c] / above : 1;
    gaps.push_back(1 - share * share);
  }
  return gaps;
}

ConditionCounts count_conditions(const LleQuality& quality) {
  ConditionCounts counts;
  std::vector<double> sorted = quality.conditions;
  std::sort(sorted.begin(), sorted.end());
  counts.largest = sorted.back();
  counts.median = sorted[sorted.size() / 2];
  counts.first = std::isfinite(sorted.front()) ? static_cast<int>(std::floor(std::log10(sorted.front()))) : 0;
  for (const double condition : sorted) {
    if (!std::isfinite(condition)) {
      ++counts.infinite;
      continue;
    }
    const auto decade = static_cast<std::size_t>(static_cast<int>(std::floor(std::log10(condition))) - counts.first);
    if (counts.decades.size() <= decade) counts.decades.resize(decade + 1, 0);
    ++counts.decades[decade];
  }
  return counts;
}

std::vector<std::string> embedding_warnings(const Lle& found) {
  std::vector<std::string> sentences;
  for (const LlePiece& piece : found.pieces) {
    if (piece.counted < 0 || piece.counted == found.options.dim) continue;
    sentences.push_back(fmt::format("{} eigenvalues lie below the next one of a piece of {} rows, where {} were found",
                                    piece.counted, format_count(piece.rows), found.options.dim));
  }
  std::int64_t localized = 0;
  double least = 1;
  double fewest = 0;
  for (const LlePiece& piece : found.pieces) {
    for (const double share : piece.localization) {
      if (share >= kLocalizedShare) continue;
      ++localized;
      if (share >= least) continue;
      least = share;
      fewest = share * static_cast<double>(piece.rows);
    }
  }
  if (localized > 0) {
    sentences.push_back(fmt::format(
        "{} of the columns live on few rows (the least on some {:.0f}), and say little of the others; a larger -k, "
        "or leaving out those rows, may help",
        localized, fewest));
  }
  if (found.pieces.size() > 1) {
    sentences.push_back(
        fmt::format("the graph of {} neighbors is in {} pieces, each embedded on its own; a larger -k may join them",
                    found.options.k, format_count(static_cast<std::int64_t>(found.pieces.size()))));
  }
  return sentences;
}

void write_embedding(const Context& ctx, const std::filesystem::path& path, const EmbeddedRows& rows) {
  if (path.empty()) return;
  const std::int64_t dim = rows.found.options.dim;
  const std::vector<double>& points = rows.placed ? *rows.placed : rows.found.embedding;
  const auto count = static_cast<std::int64_t>(points.size()) / dim;
  const ArrayView view{points.data(), "<f8", {count, dim}};
  if (path.extension() == ".npy") return write_npy(path, view);
  if (path.extension() == ".npz") {
    const Lle& found = rows.found;
    std::vector<double> values;
    for (const LlePiece& piece : found.pieces) {
      values.insert(values.end(), piece.singular_values.begin(), piece.singular_values.end());
    }
    const NamedArray arrays[] = {
        {"embedding", view},
        {"piece", {found.piece.data(), "<i8", {static_cast<std::int64_t>(found.piece.size())}}},
        {"singular_values", {values.data(), "<f8", {static_cast<std::int64_t>(found.pieces.size()), dim}}}};
    return write_npz(path, arrays);
  }
  std::string text = "row";
  for (std::int64_t c = 0; c < dim; ++c) text += fmt::format(",y{}", c);
  text += '\n';
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{}", i);
    for (std::int64_t c = 0; c < dim; ++c) text += fmt::format(",{}", points[static_cast<std::size_t>(i * dim + c)]);
    text += '\n';
  }
  write_text(path, text);
}

void add_embedding(Json& json, const EmbeddedRows& rows) {
  const Lle& found = rows.found;
  json["dim"] = found.options.dim;
  json["k"] = found.options.k;
  json["variant"] = name_of(found.options.variant);
  json["error"] = found.error;
  json["pieces"] = Json::array();
  for (const LlePiece& piece : found.pieces) json["pieces"].push_back(to_json(piece));
  if (found.options.variant == LleVariant::standard) json["largest_weight"] = found.largest_weight;
  json["warnings"] = embedding_warnings(found);
  json["quality"] = rows.quality ? to_json(*rows.quality) : Json(nullptr);
  json["parameters"] = rows.fit ? Json({{"affine_residual", rows.fit->affine},
                                        {"columns", rows.fit->columns},
                                        {"procrustes", rows.fit->procrustes}})
                                : Json(nullptr);
}

std::string embedding_text(const EmbeddedRows& rows) {
  const Lle& found = rows.found;
  std::vector<std::vector<std::string>> lines = {
      {"piece", "rows", "column", "eigenvalue", "gap", "residual", "localization"}};
  for (std::size_t p = 0; p < std::min(kPiecesTold, found.pieces.size()); ++p) {
    const LlePiece& piece = found.pieces[p];
    const std::vector<double> gaps = eigenvalue_gaps(piece);
    for (std::size_t c = 0; c < piece.singular_values.size(); ++c) {
      lines.push_back({fmt::format("{}", p), fmt::format("{}", piece.rows), fmt::format("{}", c),
                       fmt::format("{:.4e}", piece.singular_values[c] * piece.singular_values[c]),
                       fmt::format("{:.3f}", gaps[c]), fmt::format("{:.1e}", piece.residuals[c]),
                       fmt::format("{:.3f}", piece.localization[c])});
    }
  }
  std::string text = format_table(lines);
  if (rows.quality) {
    const ConditionCounts counts = count_conditions(*rows.quality);
    text += format_table({{"trustworthiness", fmt::format("{:.4f}", rows.quality->trustworthiness)},
                          {"continuity", fmt::format("{:.4f}", rows.quality->continuity)},
                          {"judged rows", format_count(static_cast<std::int64_t>(rows.quality->rows.size()))},
                          {"largest condition", report::short_number(counts.largest)}});
  }
  if (rows.fit) {
    text += format_table({{"affine residual", report::short_number(rows.fit->affine)},
                          {"procrustes", report::short_number(rows.fit->procrustes)}});
  }
  return text;
}

}  // namespace vicinal::cli

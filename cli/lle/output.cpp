// See output.hpp.
#include "lle/output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/interrupt.hpp"
#include "base/missing.hpp"
#include "io/id_array.hpp"
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

Json piece_json(const LlePiece& piece) {
  return {{"rows", piece.rows},
          {"placed", piece.placed},
          {"component", piece.component},
          {"closed_classes", piece.closed_classes > 0 ? Json(piece.closed_classes) : Json(nullptr)},
          {"solver", name_of(piece.solver)},
          {"singular_values", piece.singular_values},
          {"eigenvalues", eigenvalues_of(piece)},
          {"gaps", eigenvalue_gaps(piece)},
          {"next_singular_value", piece.next_singular_value},
          {"next_eigenvalue", piece.next_singular_value * piece.next_singular_value},
          {"zeros", piece.zeros},
          {"residuals", piece.residuals},
          {"angles", piece.angles},
          {"localization", piece.localization},
          {"norm", piece.norm},
          {"counted", piece.counted < 0 ? Json(nullptr) : Json(piece.counted)},
          {"count", name_of(piece.count)},
          {"count_means", count_sentence(piece)},
          {"iterations", piece.iterations},
          {"fill", piece.fill},
          {"flops", piece.flops}};
}

Json quality_json(const LleQuality& quality) {
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

std::string written_label(const EmbeddedRows& rows, std::int64_t row) {
  return rows.labels->name_of(rows.labels->codes[static_cast<std::size_t>(row)]);
}

/// The label of every row that is written.
RowIds label_texts(const Context& ctx, const EmbeddedRows& rows) {
  RowIds texts;
  for (std::int64_t i = 0; i < std::ssize(rows.labels->codes); ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    texts.add(written_label(rows, i));
  }
  return texts;
}

}  // namespace

std::string EmbeddedRows::parameter_name(std::size_t parameter) const {
  return parameter < parameters.size() ? parameters[parameter] : fmt::format("{}", parameter);
}

std::vector<double> eigenvalue_gaps(const LlePiece& piece) {
  std::vector<double> gaps;
  for (std::size_t c = 0; c < piece.singular_values.size(); ++c) {
    const bool last = c + 1 == piece.singular_values.size();
    const double above = last ? piece.next_singular_value : piece.singular_values[c + 1];
    const double share = above > 0 ? piece.singular_values[c] / above : 1;
    gaps.push_back(1 - share * share);
  }
  return gaps;
}

ConditionCounts count_conditions(const LleQuality& quality) {
  ConditionCounts counts;
  std::vector<double> sorted = quality.conditions;
  std::sort(sorted.begin(), sorted.end(), [](double a, double b) {
    poll_interrupt();
    return a < b;
  });
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

std::string count_sentence(const LlePiece& piece) {
  switch (piece.count) {
    case LleCount::complete:
      return "none was skipped";
    case LleCount::clustered:
      return "clustered: the last column and the next have the same eigenvalue to 0.1 %, so that other vectors of that "
             "cluster would be equally good; none below it was skipped";
    case LleCount::skipped:
      return fmt::format("skipped: {} eigenvalues are below the next one, but {} were found", piece.counted,
                         piece.singular_values.size());
    case LleCount::unresolved:
      return piece.zeros > 0 ? std::string("not counted: eigenvalues are 0 to rounding")
                             : std::string("not counted: eigenvalues are too close for a factor to separate them");
    case LleCount::not_asked:
      return "not counted, as asked";
    default:
      return piece.solver == LleSolver::dense
                 ? std::string("not counted: dense finds every eigenvalue")
                 : fmt::format("not counted: {} computes no factor", name_of(piece.solver));
  }
}

std::vector<std::string> embedding_warnings(const Lle& found) {
  std::vector<std::string> sentences;
  const auto warn_of = [&](const auto& holds, const std::string& what) {
    const auto hit = std::find_if(found.pieces.begin(), found.pieces.end(), holds);
    if (hit == found.pieces.end()) return;
    const auto count = std::count_if(hit, found.pieces.end(), holds);
    sentences.push_back(fmt::format("{} (in {} of {} pieces, the first of {} rows)", what, format_count(count),
                                    format_count(std::ssize(found.pieces)), format_count(hit->rows)));
  };
  for (const LleCount count : {LleCount::skipped, LleCount::clustered}) {
    const auto holds = [count](const LlePiece& piece) { return piece.count == count; };
    const auto hit = std::find_if(found.pieces.begin(), found.pieces.end(), holds);
    if (hit != found.pieces.end()) warn_of(holds, "eigenvalues " + count_sentence(*hit));
  }
  warn_of([](const LlePiece& piece) { return piece.zeros > 0; },
          "eigenvalues besides that of the constant vector are 0 within rounding: other columns would fit equally "
          "well, and groups of rows may fall on one point");
  if (!found.warning.empty()) sentences.push_back(found.warning);
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
    sentences.push_back(
        fmt::format("{} of the columns are concentrated on few rows (the least on about {:.0f}) and say little about "
                    "the others; a larger -k may help, or dropping those rows",
                    localized, fewest));
  }
  if (found.pieces.size() > 1) {
    sentences.push_back(
        fmt::format("the graph of {} neighbors has {} pieces, each embedded separately; a larger -k may join them",
                    found.options.k, format_count(static_cast<std::int64_t>(found.pieces.size()))));
  }
  const auto divided = [](const LlePiece& piece) { return piece.closed_classes > 1; };
  if (const auto hit = std::find_if(found.pieces.begin(), found.pieces.end(), divided); hit != found.pieces.end()) {
    sentences.push_back(fmt::format(
        "{} of these pieces are closed classes, whose rows have neighbors in their own class only (component {} has "
        "{}): one embedding of a whole component would put each class on one place; {} rows that lead to several of "
        "them are placed by their neighbors",
        format_count(std::count_if(hit, found.pieces.end(), divided)), hit->component,
        format_count(hit->closed_classes), format_count(std::ssize(found.placed))));
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
    std::vector<std::int64_t> placed = found.placed;
    for (std::int64_t& row : placed) row = row_number(row, rows.numbers);
    std::vector<NamedArray> arrays = {
        {"embedding", view},
        {"piece", {found.piece.data(), "<i8", {static_cast<std::int64_t>(found.piece.size())}}},
        {"placed", {placed.data(), "<i8", {static_cast<std::int64_t>(placed.size())}}},
        {"singular_values", {values.data(), "<f8", {static_cast<std::int64_t>(found.pieces.size()), dim}}}};
    const auto n = static_cast<std::int64_t>(rows.numbers.size());
    if (n > 0) arrays.push_back({"rows", {rows.numbers.data(), "<i8", {n}}});
    std::optional<io::IdArray> ids;
    if (rows.names.ids() != nullptr)
      arrays.push_back({"row_ids", ids.emplace(ctx, path.string(), *rows.names.ids()).view()});
    std::optional<io::IdArray> labels;
    if (rows.labels != nullptr)
      arrays.push_back({"labels", labels.emplace(ctx, path.string(), label_texts(ctx, rows)).view()});
    return write_npz(path, arrays);
  }
  std::string text = csv_field(rows.names.header());
  for (std::int64_t c = 0; c < dim; ++c) text += fmt::format(",y{}", c);
  if (rows.labels != nullptr) text += "," + csv_field(rows.label_name.empty() ? "label" : rows.label_name);
  text += '\n';
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += rows.names.field(i);
    for (std::int64_t c = 0; c < dim; ++c) text += fmt::format(",{}", points[static_cast<std::size_t>(i * dim + c)]);
    if (rows.labels != nullptr) text += "," + csv_field(written_label(rows, i));
    text += '\n';
  }
  write_text(path, text);
}

void add_embedding(Json& json, const EmbeddedRows& rows) {
  const Lle& found = rows.found;
  json["dim"] = found.options.dim;
  json["k"] = found.options.k;
  json["variant"] = name_of(found.options.variant);
  json["eigenvalue_sum"] = found.eigenvalue_sum;
  json["placed_rows"] = found.placed.size();
  json["pieces"] = Json::array();
  for (const LlePiece& piece : found.pieces) json["pieces"].push_back(piece_json(piece));
  if (found.options.variant == LleVariant::standard) json["largest_weight"] = found.largest_weight;
  json["warnings"] = embedding_warnings(found);
  json["quality"] = rows.quality ? quality_json(*rows.quality) : Json(nullptr);
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
    std::vector<std::vector<std::string>> fit = {{"affine residual", report::short_number(rows.fit->affine)}};
    for (std::size_t j = 0; j < rows.fit->columns.size(); ++j) {
      fit.push_back({"of parameter " + rows.parameter_name(j), report::short_number(rows.fit->columns[j])});
    }
    fit.push_back({"procrustes", report::short_number(rows.fit->procrustes)});
    text += format_table(fit);
  }
  return text;
}

}  // namespace vicinal::cli

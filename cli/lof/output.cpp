// See output.hpp.
#include "lof/output.hpp"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/missing.hpp"
#include "io/id_array.hpp"
#include "report/html.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kLongestName = 28;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

std::string label_of_row(const ScoredRows& scored, std::int64_t row) {
  return scored.labels->name_of(scored.labels->codes[static_cast<std::size_t>(row)]);
}

std::string top_text(const Lof& lof, const ScoredRows& scored, const Preparation& preparation) {
  if (scored.top.empty()) return {};
  std::vector<std::vector<std::string>> lines = {
      {"rank", scored.names.header(), std::string(name_of(lof.options.score))}};
  const bool labelled = scored.labels != nullptr;
  if (labelled) lines[0].emplace_back("label");
  std::size_t most = 0;
  for (const OutlyingRow& one : scored.top) most = std::max(most, one.columns.size());
  for (std::size_t c = 0; c < most; ++c) lines[0].emplace_back(c == 0 ? "pushed out by" : "");
  for (std::size_t i = 0; i < scored.top.size(); ++i) {
    const OutlyingRow& one = scored.top[i];
    lines.push_back({fmt::format("{}", i + 1), report::shortened(scored.names.text(one.row), kLongestName),
                     fmt::format("{:.6g}", one.score)});
    if (labelled) lines.back().push_back(report::shortened(label_of_row(scored, one.row), kLongestName));
    for (const ColumnShare& share : one.columns) {
      if (share.share < kShareShown) continue;
      lines.back().push_back(fmt::format(
          "{} ({:.0f} %)", report::shortened(preparation.name_of(share.column), kLongestName), 100 * share.share));
    }
  }
  return format_table(lines);
}

std::string detection_text(const Detection& detection) {
  std::vector<std::vector<std::string>> lines = {
      {"label", "rows", fmt::format("in the top {}", format_count(detection.top_rows)), "share"}};
  for (const Detection::Class& one : detection.classes) {
    lines.push_back({report::shortened(one.name, kLongestName), format_count(one.rows), format_count(one.found),
                     fmt::format("{:.1f} %", 100 * static_cast<double>(one.found) / static_cast<double>(one.rows))});
  }
  std::string text = format_table(lines);
  if (detection.ranking) {
    const Ranking& ranking = *detection.ranking;
    text += fmt::format("ROC-AUC {:.6f}, average precision {:.6f}, precision at {} {:.6f}, normal is {}\n",
                        ranking.roc_auc, ranking.average_precision, ranking.outliers, ranking.precision_at_n,
                        report::shortened(*detection.normal, kLongestName));
  }
  return text;
}

}  // namespace

void write_scores(const Context& ctx, const std::filesystem::path& path, const Lof& lof, const ScoredRows& scored) {
  if (path.empty()) return;
  const auto m = static_cast<std::int64_t>(scored.scores.size());
  const ArrayView scores{scored.scores.data(), "<f8", {m}};
  if (path.extension() == ".npy") return write_npy(path, scores);
  if (path.extension() == ".npz") {
    std::vector<unsigned char> flags(scored.scores.size());
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = scored.scores[i] > lof.threshold ? 1 : 0;
    std::vector<NamedArray> arrays = {
        {"scores", scores}, {"threshold", {&lof.threshold, "<f8", {1}}}, {"outliers", {flags.data(), "|u1", {m}}}};
    const std::vector<std::int64_t>& numbers = scored.names.numbers();
    if (!numbers.empty()) arrays.push_back({"rows", {numbers.data(), "<i8", {m}}});
    std::optional<io::IdArray> ids;
    if (scored.names.ids() != nullptr)
      arrays.push_back({"row_ids", ids.emplace(ctx, path.string(), *scored.names.ids()).view()});
    return write_npz(path, arrays);
  }
  std::vector<std::int64_t> ranks(scored.ranked.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[static_cast<std::size_t>(scored.ranked[i])] = static_cast<std::int64_t>(i) + 1;
  }
  std::string text = fmt::format("{},{},rank,outlier\n", csv_field(scored.names.header()), name_of(lof.options.score));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{},{},{},{}\n", scored.names.field(static_cast<std::int64_t>(i)), scored.scores[i], ranks[i],
                        scored.scores[i] > lof.threshold ? 1 : 0);
  }
  write_text(path, text);
}

std::string scores_text(const Lof& lof, const ScoredRows& scored, const Preparation& preparation) {
  std::string text = top_text(lof, scored, preparation);
  if (scored.detection) text += (text.empty() ? "" : "\n") + detection_text(*scored.detection);
  return text;
}

void add_scores(Json& json, const Lof& lof, const ScoredRows& scored, const Preparation& preparation) {
  json["score"] = name_of(lof.options.score);
  json["k"] = lof.options.k;
  if (lof.options.k_to > lof.options.k) {
    json["k_to"] = lof.options.k_to;
    json["across"] = name_of(lof.options.across);
  }
  json["duplicates"] = name_of(lof.options.duplicates);
  json["ties"] = name_of(lof.options.ties);
  json["metric"] = name_of(lof.options.metric);
  json["threshold"] = number(lof.threshold);
  json["outliers"] = scored.outliers;
  json["copied"] = lof.copied;
  json["top"] = Json::array();
  for (std::size_t i = 0; i < scored.top.size(); ++i) {
    const OutlyingRow& one = scored.top[i];
    Json row = {{"rank", i + 1}, {"row", scored.names.json(one.row)}, {"score", number(one.score)}};
    if (scored.labels != nullptr) row["label"] = label_of_row(scored, one.row);
    row["columns"] = Json::array();
    for (const ColumnShare& share : one.columns) {
      row["columns"].push_back({{"column", preparation.name_of(share.column)}, {"share", share.share}});
    }
    json["top"].push_back(row);
  }
  if (!scored.detection) return;
  const Detection& detection = *scored.detection;
  Json labels = {{"top_share", detection.top_share}, {"top_rows", detection.top_rows}, {"classes", Json::array()}};
  for (const Detection::Class& one : detection.classes) {
    labels["classes"].push_back({{"label", one.name}, {"rows", one.rows}, {"found", one.found}});
  }
  labels["normal"] = detection.normal ? Json(*detection.normal) : Json(nullptr);
  const auto of_ranking = [&](double Ranking::*score) {
    return detection.ranking ? Json((*detection.ranking).*score) : Json(nullptr);
  };
  labels["outliers"] = detection.ranking ? Json(detection.ranking->outliers) : Json(nullptr);
  labels["roc_auc"] = of_ranking(&Ranking::roc_auc);
  labels["average_precision"] = of_ranking(&Ranking::average_precision);
  labels["precision_at_n"] = of_ranking(&Ranking::precision_at_n);
  json["labels"] = labels;
}

}  // namespace vicinal::cli

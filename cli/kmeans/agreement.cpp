// See agreement.hpp.
#include "kmeans/agreement.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace vicinal::cli {

ClusteringScores agreement(const Context& ctx, const Labels& known, std::span<const std::int32_t> clusters,
                           std::int64_t count) {
  return clustering_scores(ctx, {known.codes, known.class_count()}, {clusters, count});
}

std::string agreement_text(const ClusteringScores& scores) {
  const auto shown = [](double score) { return fmt::format("{:.6f}", score); };
  return format_table({{"adjusted Rand", "NMI", "homogeneity", "completeness", "V-measure"},
                       {shown(scores.adjusted_rand), shown(scores.normalized_mutual_info), shown(scores.homogeneity),
                        shown(scores.completeness), shown(scores.v_measure)}});
}

Json to_json(const ClusteringScores& scores) {
  return {{"adjusted_rand", scores.adjusted_rand},
          {"normalized_mutual_info", scores.normalized_mutual_info},
          {"homogeneity", scores.homogeneity},
          {"completeness", scores.completeness},
          {"v_measure", scores.v_measure}};
}

}  // namespace vicinal::cli

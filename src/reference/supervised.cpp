// See supervised.hpp.
#include "reference/supervised.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "reference/fma.hpp"
#include "reference/kmeans.hpp"
#include "reference/kmeans_problem.hpp"

namespace vicinal::reference {
namespace {

double in_lanes(const std::array<double, 8>& a) {
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

}  // namespace

VICINAL_WITH_AND_WITHOUT_FMA
std::vector<double> average(const NeighborGraph& graph, std::span<const double> targets, std::int64_t outputs,
                            Weighting weights, double outlier, std::span<const double> given) {
  std::vector<double> values;
  std::size_t neighbor = 0;
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    const auto ids = graph.ids_of(i);
    const auto distances = graph.distances_of(i);
    const auto counts_as_zero = [](double d) { return d < std::ldexp(1.0, -960); };
    const bool touches = std::any_of(distances.begin(), distances.end(), counts_as_zero);
    std::vector<double> w;
    for (const double d : distances) {
      if (weights == Weighting::uniform) w.push_back(1);
      if (weights == Weighting::distance) w.push_back(touches ? (counts_as_zero(d) ? 1 : 0) : 1 / d);
      if (weights == Weighting::given) w.push_back(given[neighbor++]);
    }
    std::array<double, 8> all = {};
    for (std::size_t r = 0; r < w.size(); ++r) all[r % 8] += w[r];
    for (std::int64_t o = 0; o < outputs; ++o) {
      std::array<double, 8> sum = {};
      for (std::size_t r = 0; r < w.size(); ++r) {
        sum[r % 8] = std::fma(w[r], targets[static_cast<std::size_t>(ids[r] * outputs + o)], sum[r % 8]);
      }
      values.push_back(w.empty() ? outlier : in_lanes(sum) / in_lanes(all));
    }
  }
  return values;
}

std::vector<std::int32_t> folds(std::span<const std::int32_t> codes, std::int64_t folds, std::uint64_t seed) {
  std::map<std::int32_t, std::vector<std::pair<double, std::int64_t>>> classes;
  Draws draws{seed, 0x63760000U};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    classes[codes[i]].emplace_back(draws.next(), static_cast<std::int64_t>(i));
  }
  std::vector<std::int32_t> fold_of(codes.size());
  std::int64_t position = 0;
  for (auto& [code, rows] : classes) {
    std::sort(rows.begin(), rows.end());
    for (const auto& [draw, row] : rows) {
      fold_of[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(position++ % folds);
    }
  }
  return fold_of;
}

CrossValidated cross_validate(const Ranking& ranking, std::span<const std::int32_t> fold_of, const Supervised& what,
                              std::int64_t k, std::int64_t k_to) {
  CrossValidated found;
  const std::int32_t fold_count = *std::max_element(fold_of.begin(), fold_of.end()) + 1;
  Ranking outside(ranking.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    for (const Candidate& c : ranking[i]) {
      if (fold_of[static_cast<std::size_t>(c.id)] != fold_of[i]) outside[i].push_back(c);
    }
  }
  for (std::int64_t asked = k; asked <= k_to; ++asked) {
    const NeighborGraph graph = knn(outside, asked);
    const bool classes = what.labels != nullptr;
    const Vote votes = classes ? vote(graph, *what.labels, what.weights) : Vote{};
    const std::vector<double> means =
        classes ? std::vector<double>() : average(graph, what.targets, what.outputs, what.weights, NAN);
    const auto score = [&](std::int32_t fold) {  // -1: all
      std::vector<double> terms;
      std::int64_t rows = 0;
      for (std::size_t i = 0; i < outside.size(); ++i) {
        if (fold >= 0 && fold_of[i] != fold) continue;
        ++rows;
        if (classes) terms.push_back(votes.codes[i] == what.labels->codes[i] ? 1 : 0);
        for (std::int64_t o = 0; o < what.outputs; ++o) {
          const std::size_t at = i * static_cast<std::size_t>(what.outputs) + static_cast<std::size_t>(o);
          const double error = means[at] - what.targets[at];
          terms.push_back(error * error);
        }
      }
      return exact_sum(terms) / static_cast<double>(classes ? rows : rows * what.outputs);
    };
    found.scores.push_back(score(-1));
    for (std::int32_t f = 0; f < fold_count; ++f) found.fold_scores.push_back(score(f));
    const double best = found.k == 0 ? 0 : found.scores[static_cast<std::size_t>(found.k - k)];
    const bool better = classes ? found.scores.back() > best : found.scores.back() < best;
    if (found.k == 0 || better) found.k = asked;
  }
  return found;
}

}  // namespace vicinal::reference

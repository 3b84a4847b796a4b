// See kmeans.hpp.
#include "reference/kmeans.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "reference/kmeans_problem.hpp"
#include "reference/reference.hpp"

namespace vicinal::reference {

std::int32_t nearest(const Problem& problem, std::int64_t i, std::span<const double> centres) {
  std::int32_t label = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c * problem.d < static_cast<std::int64_t>(centres.size()); ++c) {
    const double distance = problem.key_to(i, centres, c);
    if (distance < least) {
      least = distance;
      label = static_cast<std::int32_t>(c);
    }
  }
  return label;
}

double inertia_of(const Problem& problem, std::span<const double> centres, std::span<const std::int32_t> labels) {
  std::vector<double> terms;
  for (std::int64_t i = 0; i < problem.n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    terms.push_back(problem.weights[at] * problem.key_to(i, centres, labels[at]));
  }
  return problem.cosine ? exact_sum(terms) / 2 : exact_sum(terms);
}

std::vector<std::int64_t> make_means(const Problem& problem, std::span<const std::int32_t> labels,
                                     std::vector<double>& centres) {
  const auto k = static_cast<std::int64_t>(centres.size()) / problem.d;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(k));
  for (std::int64_t c = 0; c < k; ++c) {
    std::vector<std::int64_t> members;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < problem.n; ++i) {
      if (labels[static_cast<std::size_t>(i)] != c) continue;
      members.push_back(i);
      weights.push_back(problem.weights[static_cast<std::size_t>(i)]);
    }
    sizes[static_cast<std::size_t>(c)] = static_cast<std::int64_t>(members.size());
    if (members.empty()) continue;
    const double weight = exact_sum(weights);
    for (std::int64_t j = 0; j < problem.d; ++j) {
      std::vector<double> terms;
      for (std::size_t m = 0; m < members.size(); ++m) {
        terms.push_back(weights[m] * problem.row(members[m])[static_cast<std::size_t>(j)]);
      }
      centres[static_cast<std::size_t>(c * problem.d + j)] = exact_sum(terms) / weight;
    }
  }
  return sizes;
}

double step_to_means(const Problem& problem, std::span<const std::int32_t> labels, std::vector<double>& centres) {
  const std::vector<double> before = centres;
  const auto sizes = make_means(problem, labels, centres);
  double shift = 0;
  for (std::int64_t c = 0; c < problem.k; ++c) {
    const auto of = [&](const std::vector<double>& all) {
      return std::span(all).subspan(static_cast<std::size_t>(c * problem.d), static_cast<std::size_t>(problem.d));
    };
    if (problem.cosine) {
      const auto first = centres.begin() + c * problem.d;
      std::vector<double> unit = unit_row(std::vector<double>(first, first + problem.d));
      if (unit.empty() || sizes[static_cast<std::size_t>(c)] == 0) unit.assign(of(before).begin(), of(before).end());
      std::copy(unit.begin(), unit.end(), first);
    }
    shift += key(Metric::sqeuclidean, 2, of(before), of(centres));
  }
  return shift;
}

namespace {

bool fill_empty(const Problem& problem, std::span<const double> centres, std::vector<std::int32_t>& labels,
                const std::vector<double>& won_before = {}) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(problem.k));
  for (const std::int32_t label : labels) ++sizes[static_cast<std::size_t>(label)];
  std::vector<std::pair<double, std::int64_t>> order;
  for (std::int64_t i = 0; i < problem.n; ++i) {
    order.emplace_back(-problem.key_to(i, centres, labels[static_cast<std::size_t>(i)]), i);
  }
  std::sort(order.begin(), order.end());
  auto next = order.begin();
  bool moved = false;
  std::vector<std::int64_t> left = sizes;
  for (std::int64_t c = 0; c < problem.k; ++c) {
    if (sizes[static_cast<std::size_t>(c)] != 0) continue;
    if (!won_before.empty() && won_before[static_cast<std::size_t>(c)] != 0) continue;
    while (next != order.end() && next->first < 0 &&
           left[static_cast<std::size_t>(labels[static_cast<std::size_t>(next->second)])] == 1) {
      ++next;
    }
    if (next == order.end() || !(next->first < 0)) break;
    std::int32_t& label = labels[static_cast<std::size_t>(next->second)];
    --left[static_cast<std::size_t>(label)];
    label = static_cast<std::int32_t>(c);
    ++next;
    moved = true;
  }
  return moved;
}

double least_shift(const Problem& problem, const KMeansOptions& options) {
  const std::vector<std::int32_t> together(static_cast<std::size_t>(problem.n), 0);
  std::vector<double> mean(static_cast<std::size_t>(problem.d), 0);
  make_means(problem, together, mean);
  const double variance = (problem.cosine ? 2 : 1) * inertia_of(problem, mean, together) / exact_sum(problem.weights) /
                          static_cast<double>(problem.d);
  return options.tolerance * variance;
}

// Mini-batches: everything about one batch is made anew.
void run_batches(const Problem& problem, const KMeansOptions& options, std::int64_t run, KMeans& result,
                 std::vector<double>& centres) {
  Draws draws{options.seed, 0x6b6e0000U + static_cast<std::uint64_t>(run)};
  std::vector<double> won(static_cast<std::size_t>(problem.k), 0);
  std::vector<double> smoothed;
  int without = 0;
  while (result.iterations < options.max_iterations && result.stopped != KMeansStop::no_improvement) {
    ++result.iterations;
    std::vector<std::int64_t> rows;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < options.batch_size; ++i) {
      rows.push_back(static_cast<std::int64_t>(std::floor(draws.next() * static_cast<double>(problem.n))));
      weights.push_back(problem.weights[static_cast<std::size_t>(rows.back())]);
    }
    const Problem batch = part_of(problem, rows, weights);
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < batch.n; ++i) labels.push_back(nearest(batch, i, centres));
    const double inertia = inertia_of(batch, centres, labels);
    if (options.history) result.history.push_back(inertia);
    if (options.empty == EmptyClusters::farthest) fill_empty(batch, centres, labels, won);
    std::vector<double> means = centres;
    const auto sizes = make_means(batch, labels, means);
    for (std::int64_t c = 0; c < problem.k; ++c) {
      if (sizes[static_cast<std::size_t>(c)] == 0) continue;
      std::vector<double> own;
      for (std::int64_t i = 0; i < batch.n; ++i) {
        if (labels[static_cast<std::size_t>(i)] == c) own.push_back(weights[static_cast<std::size_t>(i)]);
      }
      const double weight = exact_sum(own);
      double& mass = won[static_cast<std::size_t>(c)];
      mass = mass + weight;
      const double rate = weight / mass;
      std::vector<double> moved;
      for (auto at = static_cast<std::size_t>(c * problem.d); at < static_cast<std::size_t>((c + 1) * problem.d);
           ++at) {
        moved.push_back(std::fma(rate, means[at] - centres[at], centres[at]));
      }
      if (problem.cosine) moved = unit_row(moved);
      std::copy(moved.begin(), moved.end(), centres.begin() + c * problem.d);
    }
    const double q = inertia / exact_sum(weights);
    const double a = std::min(1.0, static_cast<double>(2 * options.batch_size) / static_cast<double>(problem.n + 1));
    const double next = smoothed.empty() ? q : std::fma(a, q - smoothed.back(), smoothed.back());
    const bool better = std::all_of(smoothed.begin(), smoothed.end(), [&](double before) { return next < before; });
    smoothed.push_back(next);
    without = better ? 0 : without + 1;
    if (without == 10) result.stopped = KMeansStop::no_improvement;
  }
}

KMeans run_once(const Problem& problem, const KMeansOptions& options, std::int64_t run) {
  const bool classical = options.rule == KMeansRule::classical;
  const double allowed = least_shift(problem, options);
  KMeans result;
  result.clusters = problem.k;
  result.cols = problem.d;
  result.metric = options.metric;
  result.stopped = KMeansStop::max_iterations;
  std::vector<double> centres = first_centres(problem, options, run);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(problem.n), -1);
  const auto assign = [&] {
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < problem.n; ++i) {
      const std::int32_t label = nearest(problem, i, centres);
      changed += label != labels[static_cast<std::size_t>(i)] ? 1 : 0;
      labels[static_cast<std::size_t>(i)] = label;
    }
    return changed;
  };
  if (options.batch_size > 0) run_batches(problem, options, run, result, centres);
  while (options.batch_size == 0 && result.iterations < options.max_iterations) {
    ++result.iterations;
    const std::int64_t changed = assign();
    if (options.history) result.history.push_back(inertia_of(problem, centres, labels));
    const bool moved = options.empty == EmptyClusters::farthest && fill_empty(problem, centres, labels);
    const double shift = step_to_means(problem, labels, centres);
    const double share = static_cast<double>(changed) / static_cast<double>(problem.n);
    if (!classical && changed == 0 && !moved) {
      result.stopped = KMeansStop::labels;
      break;
    }
    if ((classical || options.changed_share > 0) && share <= options.changed_share) {
      result.stopped = KMeansStop::changed_share;
      break;
    }
    if (!classical && allowed > 0 && shift <= allowed) {
      result.stopped = KMeansStop::shift;
      break;
    }
  }
  if (!classical && result.stopped != KMeansStop::labels) assign();
  result.sizes.assign(static_cast<std::size_t>(problem.k), 0);
  for (const std::int32_t label : labels) ++result.sizes[static_cast<std::size_t>(label)];
  result.inertia = inertia_of(problem, centres, labels);
  result.centres = centres;
  result.labels = labels;
  return result;
}

}  // namespace

// Shewchuk's expansions: partial sums that do not overlap, then the one rounding, ties looked at beyond the last one.
double exact_sum(std::span<const double> terms) {
  std::vector<double> partials;
  for (double x : terms) {
    std::size_t kept = 0;
    for (double y : partials) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      const double high = x + y;
      const double low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  if (partials.empty()) return 0;
  std::size_t i = partials.size() - 1;
  double high = partials[i];
  double low = 0;
  while (i > 0) {
    const double x = high;
    const double y = partials[--i];
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  if (i > 0 && ((low < 0 && partials[i - 1] < 0) || (low > 0 && partials[i - 1] > 0))) {
    const double twice = low * 2;
    const double up = high + twice;
    if (twice == up - high) high = up;
  }
  return high + 0.0;
}

KMeans kmeans(const TableView& table, const KMeansOptions& options) {
  Problem all{
      widen(table), {options.weights.begin(), options.weights.end()}, table.rows(), table.cols(), options.clusters};
  if (options.metric == Metric::cosine) {
    all.cosine = true;
    all.rows = units(all.rows, all.d);
  }
  if (all.weights.empty()) all.weights.assign(static_cast<std::size_t>(all.n), 1);
  std::vector<std::int64_t> rows;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < all.n; ++i) {
    const double weight = all.weights[static_cast<std::size_t>(i)];
    if (weight == 0) continue;
    rows.push_back(i);
    weights.push_back(weight);
  }
  const Problem problem = part_of(all, rows, weights);
  KMeans best;
  for (std::int64_t run = 0; run < options.runs; ++run) {
    KMeans found = run_once(problem, options, run);
    if (run == 0 || found.inertia < best.inertia) best = found;
  }
  std::vector<std::int32_t> labels;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < all.n; ++i) {
    const bool has_weight = next < rows.size() && rows[next] == i;
    labels.push_back(has_weight ? best.labels[next++] : nearest(all, i, best.centres));
    if (!has_weight) ++best.sizes[static_cast<std::size_t>(labels.back())];
  }
  best.labels = labels;
  return best;
}

Classical classical_kmeans(const TableView& table, std::int64_t clusters, double threshold) {
  Problem problem{widen(table), {}, table.rows(), table.cols(), clusters};
  Classical result;
  result.centres.assign(problem.rows.begin(), problem.rows.begin() + clusters * problem.d);
  result.labels.assign(static_cast<std::size_t>(problem.n), -1);
  double delta = 0;
  do {
    delta = 0;
    std::vector<double> sums(result.centres.size(), 0);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(clusters), 0);
    for (std::int64_t i = 0; i < problem.n; ++i) {
      const std::int32_t label = nearest(problem, i, result.centres);
      if (result.labels[static_cast<std::size_t>(i)] != label) delta += 1;
      result.labels[static_cast<std::size_t>(i)] = label;
      ++sizes[static_cast<std::size_t>(label)];
      for (std::int64_t j = 0; j < problem.d; ++j) {
        sums[static_cast<std::size_t>(label * problem.d + j)] += problem.row(i)[static_cast<std::size_t>(j)];
      }
    }
    for (std::int64_t c = 0; c < clusters; ++c) {
      const auto size = sizes[static_cast<std::size_t>(c)];
      for (std::int64_t j = 0; j < problem.d && size > 0; ++j) {
        const auto at = static_cast<std::size_t>(c * problem.d + j);
        result.centres[at] = sums[at] / static_cast<double>(size);
      }
    }
    delta /= static_cast<double>(problem.n);
  } while (delta > threshold && result.loops++ < 500);
  return result;
}

}  // namespace vicinal::reference

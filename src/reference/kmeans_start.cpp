// The first centers, by the letter of docs/contract.md, clause 12, draws.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "reference/kmeans.hpp"
#include "reference/kmeans_problem.hpp"

namespace vicinal::reference {

namespace {

// Philox4x32-10, from its paper.
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const auto low = [](std::uint64_t v) { return v & 0xffffffffU; };
  std::array<std::uint64_t, 4> c = {low(counter), counter >> 32, low(stream), stream >> 32};
  std::uint64_t first = low(seed);
  std::uint64_t second = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = 0xD2511F53U * c[0];
    const std::uint64_t q = 0xCD9E8D57U * c[2];
    c = {(q >> 32) ^ c[1] ^ first, low(q), (p >> 32) ^ c[3] ^ second, low(p)};
    first = low(first + 0x9E3779B9U);
    second = low(second + 0xBB67AE85U);
  }
  return std::ldexp(static_cast<double>((c[0] << 32 | c[1]) >> 11), -53);
}

// The next level of the tree of sums: 32 numbers of this one at a time.
std::vector<double> level_above(const std::vector<double>& level) {
  std::vector<double> sums;
  for (std::size_t first = 0; first < level.size(); first += 32) {
    double a[8] = {};
    for (std::size_t i = first; i < std::min(first + 32, level.size()); ++i) a[(i - first) % 8] += level[i];
    sums.push_back(((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])));
  }
  return sums;
}

// All its levels: the masses first, the total last.
std::vector<std::vector<double>> tree_of(const std::vector<double>& masses) {
  std::vector<std::vector<double>> tree = {masses, level_above(masses)};
  while (tree.back().size() > 1) tree.push_back(level_above(tree.back()));
  return tree;
}

double total_of(const std::vector<double>& masses) {
  return tree_of(masses).back().front();
}

std::int64_t row_of(double u, const std::vector<double>& masses) {
  std::vector<std::vector<double>> tree = tree_of(masses);
  const double total = tree.back().front();
  const auto n = static_cast<std::int64_t>(masses.size());
  if (total == 0) return std::min(static_cast<std::int64_t>(u * static_cast<double>(n)), n - 1);
  double t = u * total;
  std::size_t place = 0;
  for (tree.pop_back(); !tree.empty(); tree.pop_back()) {
    const std::vector<double>& level = tree.back();
    const std::size_t first = place * 32;
    const std::size_t end = std::min(first + 32, level.size());
    double sum = 0;
    double before = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (level[i] == 0) continue;
      place = i;
      before = sum;
      sum += level[i];
      if (sum > t) break;
    }
    t -= before;
  }
  return static_cast<std::int64_t>(place);
}

std::vector<std::int64_t> random_rows(const Problem& problem, Draws& draws) {
  std::vector<std::int64_t> rows;
  std::set<std::int64_t> taken;
  for (std::int64_t j = problem.n - problem.k; j < problem.n; ++j) {
    auto row = static_cast<std::int64_t>(draws.next() * static_cast<double>(j + 1));
    if (taken.count(row) != 0) row = j;
    taken.insert(row);
    rows.push_back(row);
  }
  return rows;
}

std::vector<double> masses_of(const Problem& problem, const std::vector<double>& keys) {
  std::vector<double> masses(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) masses[i] = problem.weights[i] * keys[i];
  return masses;
}

std::vector<std::int64_t> plus_plus(const Problem& problem, Draws& draws) {
  const auto n = static_cast<std::size_t>(problem.n);
  std::vector<std::int64_t> rows;
  std::vector<double> keys(n, 1);
  const auto trials = 2 + static_cast<int>(std::floor(std::log(static_cast<double>(problem.k))));
  for (std::int64_t c = 0; c < problem.k; ++c) {
    const std::vector<double> masses = masses_of(problem, keys);
    double least = 0;
    std::int64_t chosen = -1;
    std::vector<double> of_chosen;
    for (int trial = 0; trial < (c == 0 ? 1 : trials); ++trial) {
      const std::int64_t row = row_of(draws.next(), masses);
      std::vector<double> left(n);
      for (std::size_t i = 0; i < n; ++i) {
        const double to_row = key(Metric::sqeuclidean, 2, problem.row(row), problem.row(static_cast<std::int64_t>(i)));
        left[i] = c == 0 ? to_row : std::min(keys[i], to_row);
      }
      const double total = total_of(masses_of(problem, left));
      if (chosen < 0 || total < least) {
        chosen = row;
        least = total;
        of_chosen = left;
      }
    }
    rows.push_back(chosen);
    keys = of_chosen;
  }
  return rows;
}

std::vector<std::int64_t> parallel(const Problem& problem, Draws& draws) {
  std::vector<std::int64_t> candidates = {
      row_of(draws.next(), masses_of(problem, std::vector<double>(static_cast<std::size_t>(problem.n), 1)))};
  std::vector<std::vector<double>> won;
  for (int round = 0;; ++round) {
    std::vector<double> keys;
    won.assign(candidates.size(), {});
    for (std::int64_t i = 0; i < problem.n; ++i) {
      std::size_t winner = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < candidates.size(); ++c) {
        const double to_candidate = key(Metric::sqeuclidean, 2, problem.row(candidates[c]), problem.row(i));
        if (to_candidate < least) {
          least = to_candidate;
          winner = c;
        }
      }
      keys.push_back(least);
      won[winner].push_back(problem.weights[static_cast<std::size_t>(i)]);
    }
    const std::vector<double> masses = masses_of(problem, keys);
    const bool enough = round >= 5 && static_cast<std::int64_t>(candidates.size()) >= problem.k;
    if (enough || total_of(masses) == 0) break;
    for (std::int64_t t = 0; t < 2 * problem.k; ++t) {
      const std::int64_t row = row_of(draws.next(), masses);
      if (std::find(candidates.begin(), candidates.end(), row) == candidates.end()) candidates.push_back(row);
    }
  }
  std::vector<std::int64_t> rows;
  std::vector<double> weights;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (won[c].empty()) continue;
    rows.push_back(candidates[c]);
    weights.push_back(exact_sum(won[c]));
  }
  std::vector<std::int64_t> chosen;
  for (const std::int64_t c : plus_plus(part_of(problem, rows, weights), draws)) {
    chosen.push_back(rows[static_cast<std::size_t>(c)]);
  }
  return chosen;
}

std::vector<std::int64_t> draw_rows(const Problem& problem, const KMeansOptions& options, std::int64_t run) {
  Draws draws{options.seed, 0x6b6d0000U + static_cast<std::uint64_t>(run)};
  if (options.init == KMeansInit::random) return random_rows(problem, draws);
  return options.init == KMeansInit::parallel ? parallel(problem, draws) : plus_plus(problem, draws);
}

}  // namespace

double Draws::next() {
  return uniform(seed, stream, counter++);
}

Problem part_of(const Problem& problem, const std::vector<std::int64_t>& rows, const std::vector<double>& weights) {
  Problem part{{}, weights, static_cast<std::int64_t>(rows.size()), problem.d, problem.k, problem.cosine};
  for (const std::int64_t row : rows) {
    const auto values = problem.row(row);
    part.rows.insert(part.rows.end(), values.begin(), values.end());
  }
  return part;
}

// Rows at length one, as the cosine key wants them.
std::vector<double> units(const std::vector<double>& rows, std::int64_t d) {
  std::vector<double> all;
  for (auto row = rows.begin(); row != rows.end(); row += d) {
    const std::vector<double> unit = unit_row(std::vector<double>(row, row + d));
    all.insert(all.end(), unit.begin(), unit.end());
  }
  return all;
}

std::vector<double> first_centres(const Problem& problem, const KMeansOptions& options, std::int64_t run) {
  if (options.init == KMeansInit::given) {
    return problem.cosine ? units(widen(options.centres), problem.d) : widen(options.centres);
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(problem.k));
  std::iota(rows.begin(), rows.end(), 0);
  if (options.init != KMeansInit::first_k) rows = draw_rows(problem, options, run);
  std::vector<double> centres;
  for (const std::int64_t row : rows) {
    const auto values = problem.row(row);
    centres.insert(centres.end(), values.begin(), values.end());
  }
  return centres;
}

}  // namespace vicinal::reference

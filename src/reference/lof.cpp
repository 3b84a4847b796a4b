// See lof.hpp.
#include "reference/lof.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "reference/fma.hpp"
#include "reference/kmeans.hpp"

namespace vicinal::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A row, or a place of `weight` of them named by the smallest.
struct Near {
  double distance = 0;
  std::int64_t id = 0;
  std::int64_t weight = 1;
};
using Neighborhood = std::vector<Near>;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// "Clause 1's accumulation, the i-th term being column i. A term of weight w is a = fma(w, term, a)."
class Sum {
 public:
  void add(double weight, double term) {
    double& a = a_[terms_++ % 8];
    a = std::fma(weight, term, a);
  }
  [[nodiscard]] double value() const {
    return ((a_[0] + a_[4]) + (a_[2] + a_[6])) + ((a_[1] + a_[5]) + (a_[3] + a_[7]));
  }

 private:
  std::array<double, 8> a_{};
  std::size_t terms_ = 0;
};

template <class Term>
double sum_over(const Neighborhood& near, Term term) {
  Sum sum;
  for (const Near& o : near) sum.add(static_cast<double>(o.weight), term(o));
  return sum.value();
}

template <class Term>
double mean_over(const Neighborhood& near, Term term) {
  std::int64_t count = 0;
  for (const Near& o : near) count += o.weight;
  return sum_over(near, term) / static_cast<double>(count);
}

// "0 / 0 is 1; x / 0 is infinity."
double quotient(double x, double y) {
  if (y == 0) return x == 0 ? 1 : kInfinity;
  return x / y;
}

double distance_between(const LofOptions& options, std::span<const double> x, std::span<const double> y) {
  return distance_of(options.metric, options.p, key(options.metric, options.p, x, y));
}

// Rows of a table and of queries, for those who look at them.
struct Values {
  std::vector<double> rows;
  std::int64_t d = 0;
  explicit Values(const TableView* table) {
    if (table == nullptr) return;
    rows = widen(*table);
    d = table->cols();
  }
  [[nodiscard]] std::span<const double> row(std::int64_t i) const { return std::span(rows).subspan(at(i * d), at(d)); }
};

// Rows that are equal as numbers, under the smallest of them.
struct Places {
  std::map<std::vector<double>, std::int64_t> smallest;
  std::vector<std::int64_t> of_row;
  std::vector<std::int64_t> sizes;  // at the smallest row

  static std::vector<double> numbers_of(std::span<const double> row) {
    std::vector<double> numbers(row.begin(), row.end());
    for (double& x : numbers) x = x == 0 ? 0 : x;
    return numbers;
  }
  explicit Places(const Values& table) {
    for (std::int64_t i = 0; at(i * table.d) < table.rows.size(); ++i) {
      of_row.push_back(smallest.try_emplace(numbers_of(table.row(i)), i).first->second);
      sizes.push_back(0);
      ++sizes[at(of_row.back())];
    }
  }
  // The smallest row equal to this one, -1 where there is none.
  [[nodiscard]] std::int64_t of(std::span<const double> row) const {
    const auto found = smallest.find(numbers_of(row));
    return found == smallest.end() ? -1 : found->second;
  }
};

// The neighborhood of p as a list of places. `own`: p's place, -1 for none; `copies`: other rows there.
Neighborhood places_near(const Places& places, std::int64_t own, std::int64_t copies,
                         const std::vector<Candidate>& ranked, const LofOptions& options) {
  Neighborhood near;
  Neighborhood others;
  std::set<std::int64_t> met;
  for (const Candidate& c : ranked) {
    const std::int64_t place = places.of_row[at(c.id)];
    if (!met.insert(place).second) continue;
    if (place == own) {
      near.push_back({c.distance, place, copies});
    } else {
      others.push_back({c.distance, place, places.sizes[at(place)]});
    }
  }
  const bool distinct = options.duplicates == Duplicates::distinct;
  std::int64_t reached = distinct ? 0 : copies;
  for (const Near& place : others) {
    if (reached >= options.k && !(options.ties == Ties::all && place.distance == near.back().distance)) break;
    reached += distinct ? 1 : place.weight;
    near.push_back(place);
  }
  return near;
}

Neighborhood first_of(const std::vector<Candidate>& ranked, std::int64_t k) {
  Neighborhood near;
  for (const Candidate& c : std::span(ranked).first(at(k))) near.push_back({c.distance, c.id, 1});
  return near;
}

bool has_places(const LofOptions& options) {
  return options.duplicates == Duplicates::distinct || options.ties == Ties::all;
}

bool is_lof_like(OutlierScore score) {
  return score == OutlierScore::lof || score == OutlierScore::simplified_lof || score == OutlierScore::inflo;
}

// What of the table a row's score is made of, for one k.
struct Fitted {
  std::vector<double> k_distances;
  std::vector<double> densities;  // of loop s, of the cofs c
  double cap = 0;
  double spread = 0;
};

double k_distance(const Neighborhood& near) {
  return near.back().distance;
}

double density(const LofOptions& options, const Neighborhood& near, const std::vector<double>& k_distances) {
  const double e = options.duplicates == Duplicates::sklearn ? 1e-10 : 0;
  if (options.score != OutlierScore::lof) return 1 / (k_distance(near) + e);
  return 1 / (mean_over(near, [&](const Near& o) { return std::max(o.distance, k_distances[at(o.id)]); }) + e);
}

double standard_distance(const Neighborhood& near) {
  return std::sqrt(mean_over(near, [](const Near& o) { return o.distance * o.distance; }));
}

double chaining_distance(const LofOptions& options, const Neighborhood& near, const Values& table) {
  std::vector<double> to_chain;
  for (const Near& o : near) to_chain.push_back(o.distance);
  std::vector<bool> on_it(near.size(), false);
  const auto k = static_cast<double>(near.size());
  Sum sum;
  for (std::size_t i = 1; i <= near.size(); ++i) {
    std::size_t next = i - 1;
    if (options.score == OutlierScore::cof) {
      next = near.size();
      for (std::size_t j = 0; j < near.size(); ++j) {
        if (!on_it[j] && (next == near.size() || to_chain[j] < to_chain[next])) next = j;
      }
    }
    on_it[next] = true;
    sum.add(k + 1 - static_cast<double>(i), to_chain[next]);
    for (std::size_t j = 0; j < near.size(); ++j) {
      if (on_it[j]) continue;
      to_chain[j] = std::min(to_chain[j], distance_between(options, table.row(near[next].id), table.row(near[j].id)));
    }
  }
  return 2 * sum.value() / (k * (k + 1));
}

double ldof(const LofOptions& options, const Neighborhood& near, const Values& table) {
  Sum between;
  for (std::size_t i = 0; i < near.size(); ++i) {
    for (std::size_t j = i + 1; j < near.size(); ++j) {
      between.add(1, distance_between(options, table.row(near[i].id), table.row(near[j].id)));
    }
  }
  const auto k = static_cast<double>(near.size());
  return quotient(mean_over(near, [](const Near& o) { return o.distance; }), between.value() / (k * (k - 1) / 2));
}

double plof(const Neighborhood& near, double s, const std::vector<double>& s_of_table) {
  return quotient(s, mean_over(near, [&](const Near& o) { return s_of_table[at(o.id)]; })) - 1;
}

double probability(double plof, double n) {
  if (std::isnan(plof)) return plof;
  if (plof <= 0) return 0;
  if (std::isinf(plof) || n == 0) return 1;
  const double root_of_two = 1.4142135623730951;
  const double x = plof / (n * root_of_two);
  return static_cast<double>(std::erf(static_cast<long double>(x)));
}

// (mean of l(o)) / l(p), and what copies make of it.
double relative_density(const LofOptions& options, double mean, double l) {
  if (std::isinf(l)) {
    if (options.duplicates == Duplicates::one) return std::isinf(mean) ? 1 : 0;
    return 1;
  }
  return mean / l;
}

// The score of a row by its neighborhood; `mates` are those whose densities inflo averages.
double score_of(const LofOptions& options, const Neighborhood& near, const Neighborhood& mates, const Fitted& fitted,
                const Values& table) {
  const auto fitted_mean = [&](const Neighborhood& over) {
    return mean_over(over, [&](const Near& o) { return fitted.densities[at(o.id)]; });
  };
  switch (options.score) {
    case OutlierScore::lof:
    case OutlierScore::simplified_lof:
    case OutlierScore::inflo: {
      double l = density(options, near, fitted.k_distances);
      if (options.duplicates == Duplicates::cap && std::isinf(l)) l = fitted.cap;
      return relative_density(options, fitted_mean(mates), l);
    }
    case OutlierScore::knn:
      return k_distance(near);
    case OutlierScore::knn_weighted:
      return sum_over(near, [](const Near& o) { return o.distance; });
    case OutlierScore::loop:
      return probability(plof(near, standard_distance(near), fitted.densities), fitted.spread);
    case OutlierScore::ldof:
      return ldof(options, near, table);
    case OutlierScore::cof:
    case OutlierScore::cof_pyod:
      return quotient(chaining_distance(options, near, table), fitted_mean(near));
  }
  return 0;
}

Fitted fit(const LofOptions& options, const std::vector<Neighborhood>& near, const Values& table) {
  Fitted fitted;
  for (const Neighborhood& list : near) fitted.k_distances.push_back(k_distance(list));
  for (const Neighborhood& list : near) {
    if (is_lof_like(options.score)) fitted.densities.push_back(density(options, list, fitted.k_distances));
    if (options.score == OutlierScore::loop) fitted.densities.push_back(standard_distance(list));
    if (options.score == OutlierScore::cof || options.score == OutlierScore::cof_pyod) {
      fitted.densities.push_back(chaining_distance(options, list, table));
    }
  }
  if (is_lof_like(options.score) && options.duplicates == Duplicates::cap) {
    double largest = -1;
    for (const double l : fitted.densities) largest = std::isinf(l) ? largest : std::max(largest, l);
    fitted.cap = largest >= 0 ? 2 * largest : 1;
    for (double& l : fitted.densities) l = std::isinf(l) ? fitted.cap : l;
  }
  if (options.score == OutlierScore::loop) {
    std::vector<double> squares;
    for (std::size_t i = 0; i < near.size(); ++i) {
      const double of_row = plof(near[i], fitted.densities[i], fitted.densities);
      if (std::isfinite(of_row)) squares.push_back(of_row * of_row);
    }
    fitted.spread = options.lambda * std::sqrt(exact_sum(squares) / static_cast<double>(squares.size()));
  }
  return fitted;
}

// "Of the neighborhood, then of the rows that have p in their neighborhood and are not in p's, by ascending id."
std::vector<Neighborhood> both_sides(const std::vector<Neighborhood>& near) {
  const auto holds = [](const Neighborhood& list, std::int64_t id) {
    return std::any_of(list.begin(), list.end(), [&](const Near& o) { return o.id == id; });
  };
  std::vector<Neighborhood> mates = near;
  for (std::size_t q = 0; q < near.size(); ++q) {
    const auto id = static_cast<std::int64_t>(q);
    for (const Near& p : near[q]) {
      if (!holds(near[at(p.id)], id)) mates[at(p.id)].push_back({0, id, 1});
    }
  }
  return mates;
}

double joined(AcrossK across, const std::vector<double>& scores) {
  for (const double score : scores) {
    if (std::isnan(score)) return score;
  }
  if (across == AcrossK::max) return *std::max_element(scores.begin(), scores.end());
  if (across == AcrossK::min) return *std::min_element(scores.begin(), scores.end());
  Sum sum;
  for (const double score : scores) sum.add(1, score);
  return sum.value() / static_cast<double>(scores.size());
}

double own_threshold(OutlierScore score) {
  if (score == OutlierScore::ldof) return 1;
  if (score == OutlierScore::loop) return 0.5;
  return score == OutlierScore::knn || score == OutlierScore::knn_weighted ? kInfinity : 1.5;
}

std::vector<std::int64_t> all_k(const LofOptions& options) {
  std::vector<std::int64_t> ks = {options.k};
  while (ks.back() < options.k_to) ks.push_back(ks.back() + 1);
  return ks;
}

// `lists(k)` makes the neighborhoods of all rows.
template <class Lists>
VICINAL_WITH_AND_WITHOUT_FMA Lof lof_of(std::size_t n, const LofOptions& options, const Values& table, Lists lists) {
  Lof result;
  result.options = options;
  const std::vector<std::int64_t> ks = all_k(options);
  std::vector<std::vector<double>> scores(n);
  result.k_distances.resize(n * ks.size());
  for (std::size_t j = 0; j < ks.size(); ++j) {
    const std::vector<Neighborhood> near = lists(ks[j]);
    const std::vector<Neighborhood> mates = options.score == OutlierScore::inflo ? both_sides(near) : near;
    const Fitted fitted = fit(options, near, table);
    if (!fitted.densities.empty()) result.densities.resize(n * ks.size());
    for (std::size_t i = 0; i < n; ++i) {
      scores[i].push_back(score_of(options, near[i], mates[i], fitted, table));
      result.k_distances[i * ks.size() + j] = fitted.k_distances[i];
      if (!fitted.densities.empty()) result.densities[i * ks.size() + j] = fitted.densities[i];
    }
    if (is_lof_like(options.score) && options.duplicates == Duplicates::cap) result.caps.push_back(fitted.cap);
    result.spread = fitted.spread;
  }
  for (const auto& of_row : scores) result.scores.push_back(joined(options.across, of_row));
  const bool by_share = options.contamination > 0;
  result.threshold = by_share ? threshold_of(result.scores, options.contamination) : own_threshold(options.score);
  for (const double score : result.scores) result.outliers += score > result.threshold ? 1 : 0;
  return result;
}

}  // namespace

double threshold_of(std::span<const double> scores, double contamination) {
  std::vector<double> y;
  for (const double score : scores) y.push_back(-score);
  std::sort(y.begin(), y.end());
  const double v = static_cast<double>(y.size() - 1) * ((100 * contamination) / 100);
  const double i = std::floor(v);
  const double t = v - i;
  const double a = y[static_cast<std::size_t>(i)];
  const double b = y[std::min(static_cast<std::size_t>(i) + 1, y.size() - 1)];
  if (a == b || t == 0) return -a;
  if (a == -kInfinity) return -b;
  return -(t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t));
}

Lof lof(const TableView& table, const Ranking& within, const LofOptions& options) {
  const Values values(&table);
  const Places places(values);
  Lof result = lof_of(within.size(), options, values, [&](std::int64_t k) {
    std::vector<Neighborhood> lists;
    for (std::size_t i = 0; i < within.size(); ++i) {
      const std::int64_t own = places.of_row[i];
      lists.push_back(has_places(options) ? places_near(places, own, places.sizes[at(own)] - 1, within[i], options)
                                          : first_of(within[i], k));
    }
    return lists;
  });
  const std::int64_t longest = all_k(options).back();
  for (std::size_t i = 0; i < within.size(); ++i) {
    const bool copied =
        has_places(options) ? places.sizes[at(places.of_row[i])] > options.k : within[i][at(longest - 1)].distance == 0;
    result.copied += copied ? 1 : 0;
  }
  return result;
}

Lof lof(const NeighborGraph& graph, const TableView* table, const LofOptions& options) {
  Lof result = lof_of(at(graph.rows), options, Values(table), [&](std::int64_t k) {
    std::vector<Neighborhood> lists(at(graph.rows));
    for (std::int64_t i = 0; i < graph.rows; ++i) {
      const auto ids = graph.ids_of(i);
      for (std::size_t r = 0; r < (graph.is_csr() ? ids.size() : at(k)); ++r) {
        lists[at(i)].push_back({graph.distances_of(i)[r], ids[r], 1});
      }
    }
    return lists;
  });
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    const auto distances = graph.distances_of(i);
    result.copied += distances[(graph.is_csr() ? distances.size() : at(all_k(options).back())) - 1] == 0 ? 1 : 0;
  }
  return result;
}

std::vector<double> novelty(const TableView& table, const Lof& model, const TableView& queries, const Ranking& across) {
  const LofOptions& options = model.options;
  const Values values(&table);
  const Values asked(&queries);
  const Places places(values);
  const std::vector<std::int64_t> ks = all_k(options);
  const auto n = at(table.rows());
  std::vector<Fitted> fitted(ks.size());
  for (std::size_t j = 0; j < ks.size(); ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      fitted[j].k_distances.push_back(model.k_distances[i * ks.size() + j]);
      if (!model.densities.empty()) fitted[j].densities.push_back(model.densities[i * ks.size() + j]);
    }
    if (!model.caps.empty()) fitted[j].cap = model.caps[j];
    fitted[j].spread = model.spread;
  }
  std::vector<double> result;
  for (std::size_t q = 0; q < across.size(); ++q) {
    const std::int64_t own = places.of(asked.row(static_cast<std::int64_t>(q)));
    const std::int64_t copies = own < 0 ? 0 : places.sizes[at(own)];
    std::vector<double> scores;
    for (std::size_t j = 0; j < ks.size(); ++j) {
      const Neighborhood near =
          has_places(options) ? places_near(places, own, copies, across[q], options) : first_of(across[q], ks[j]);
      scores.push_back(score_of(options, near, near, fitted[j], values));
    }
    result.push_back(joined(options.across, scores));
  }
  return result;
}

}  // namespace vicinal::reference

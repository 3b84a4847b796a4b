// Widening, ranking, cutting and voting of the oracle: contract clauses 1, 2, 5 and 14.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "reference/reference.hpp"

namespace vicinal::reference {

namespace {

// A small float by its fields: sign, exponent, fraction; ieee value = (-1)^s 2^(e - bias) 1.f, subnormal for e = 0.
double from_fields(unsigned bits, int exponent_bits, int fraction_bits) {
  const unsigned fraction = bits & ((1U << fraction_bits) - 1);
  const int exponent = static_cast<int>((bits >> fraction_bits) & ((1U << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (fraction_bits + exponent_bits)) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1U << fraction_bits), exponent - bias - fraction_bits);
}

double element(DType dtype, const void* data, std::int64_t position) {
  switch (dtype) {
    case DType::uint8:
      return static_cast<const std::uint8_t*>(data)[position];
    case DType::float16:
      return from_fields(static_cast<const float16*>(data)[position].bits, 5, 10);
    case DType::bfloat16:
      return from_fields(static_cast<const bfloat16*>(data)[position].bits, 8, 7);
    case DType::float32:
      return static_cast<const float*>(data)[position];
    case DType::float64:
      return static_cast<const double*>(data)[position];
  }
  throw std::logic_error("reference::widen: unknown dtype");
}

bool is_eligible(const Question& question, std::int64_t query, std::int64_t row) {
  if (question.self && query == row) return false;
  if (!question.exclude.empty() && question.exclude[static_cast<std::size_t>(query)] == row) return false;
  if (question.filter.empty()) return true;
  return (question.filter[static_cast<std::size_t>(row / 64)] >> (row % 64) & 1) != 0;
}

bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.key != b.key) return a.key < b.key;
  return a.id < b.id;
}

// Rows as the metric compares them: for cosine scaled to length one, once instead of once a pair.
std::vector<std::vector<double>> comparable(Metric metric, const TableView& table) {
  const std::vector<double> values = widen(table);
  const auto d = static_cast<std::size_t>(table.cols());
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(table.rows()); ++i) {
    const std::span<const double> row(values.data() + i * d, d);
    rows.push_back(metric == Metric::cosine ? unit_row(row) : std::vector<double>(row.begin(), row.end()));
  }
  return rows;
}

void append(NeighborGraph& graph, const Candidate& candidate) {
  graph.ids.push_back(candidate.id);
  graph.distances.push_back(candidate.distance);
}

}  // namespace

std::vector<double> widen(const TableView& table) {
  const std::int64_t n = table.rows();
  const std::int64_t d = table.cols();
  std::vector<double> rows;
  rows.reserve(static_cast<std::size_t>(n * d));
  if (table.is_block_source()) {
    std::vector<std::uint64_t> block(static_cast<std::size_t>(n * d));  // room for the widest dtype, aligned
    table.source()(0, n, block.data());
    for (std::int64_t i = 0; i < n * d; ++i) rows.push_back(element(table.dtype(), block.data(), i));
    return rows;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      rows.push_back(element(table.dtype(), table.data(), i * table.row_stride() + j * table.col_stride()));
    }
  }
  return rows;
}

Ranking rank(const TableView& table, const TableView& queries, const Question& question,
             std::vector<std::pair<std::int64_t, std::int64_t>>* overflow) {
  const auto rows = comparable(question.metric, table);
  const auto asked = comparable(question.metric, queries);
  Ranking ranking(static_cast<std::size_t>(queries.rows()));
  for (std::int64_t i = 0; i < queries.rows(); ++i) {
    const std::vector<double>& x = asked[static_cast<std::size_t>(i)];
    std::vector<Candidate>& list = ranking[static_cast<std::size_t>(i)];
    for (std::int64_t row = 0; row < table.rows(); ++row) {
      if (!is_eligible(question, i, row)) continue;
      const std::vector<double>& y = rows[static_cast<std::size_t>(row)];
      const double k =
          question.metric == Metric::cosine ? cosine_of_units(x, y) : key(question.metric, question.p, x, y);
      if (std::isfinite(k)) {
        list.push_back({k, row, 0});
      } else if (overflow != nullptr) {
        overflow->emplace_back(i, row);
      }
    }
    std::sort(list.begin(), list.end(), comes_before);
    for (Candidate& c : list) c.distance = distance_of(question.metric, question.p, c.key);
  }
  return ranking;
}

NeighborGraph knn(const Ranking& ranking, std::int64_t k) {
  NeighborGraph graph;
  graph.rows = static_cast<std::int64_t>(ranking.size());
  graph.k = k;
  for (const auto& list : ranking) {
    if (static_cast<std::int64_t>(list.size()) < k) throw std::invalid_argument("reference::knn: k too large");
    for (std::int64_t r = 0; r < k; ++r) append(graph, list[static_cast<std::size_t>(r)]);
  }
  return graph;
}

NeighborGraph radius(const Ranking& ranking, std::span<const double> radii) {
  NeighborGraph graph;
  graph.rows = static_cast<std::int64_t>(ranking.size());
  graph.offsets.push_back(0);
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    for (const Candidate& c : ranking[i]) {
      if (c.distance <= radii[i]) append(graph, c);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.ids.size()));
  }
  return graph;
}

NeighborGraph radius(const Ranking& ranking, double radius) {
  return reference::radius(ranking, std::vector<double>(ranking.size(), radius));
}

std::vector<std::int64_t> count(const Ranking& ranking, std::span<const double> radii) {
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    const auto is_within = [&](const Candidate& c) { return c.distance <= radii[i]; };
    counts.push_back(std::count_if(ranking[i].begin(), ranking[i].end(), is_within));
  }
  return counts;
}

std::vector<std::int64_t> count(const Ranking& ranking, double radius) {
  return count(ranking, std::vector<double>(ranking.size(), radius));
}

NeighborGraph by_id(NeighborGraph graph) {
  for (std::int64_t row = 0; row < graph.rows; ++row) {
    std::vector<std::pair<std::int64_t, double>> list;
    for (std::size_t i = 0; i < graph.ids_of(row).size(); ++i) {
      list.emplace_back(graph.ids_of(row)[i], graph.distances_of(row)[i]);
    }
    std::sort(list.begin(), list.end());
    auto at = static_cast<std::size_t>(graph.offsets[static_cast<std::size_t>(row)]);
    for (const auto& [id, distance] : list) {
      graph.ids[at] = id;
      graph.distances[at++] = distance;
    }
  }
  return graph;
}

Vote vote(const NeighborGraph& graph, const Labels& labels, Weighting weights, std::span<const double> given) {
  std::size_t neighbor = 0;
  Vote result;
  result.class_count = labels.class_count();
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    const auto ids = graph.ids_of(i);
    const auto distances = graph.distances_of(i);
    const auto counts_as_zero = [](double d) { return d < std::ldexp(1.0, -960); };
    const bool touches = std::any_of(distances.begin(), distances.end(), counts_as_zero);
    std::vector<double> mass(static_cast<std::size_t>(result.class_count), 0.0);
    double total = 0;
    for (std::size_t r = 0; r < ids.size(); ++r) {
      double weight = 1;
      if (weights == Weighting::distance) weight = touches ? (counts_as_zero(distances[r]) ? 1 : 0) : 1 / distances[r];
      if (weights == Weighting::given) weight = given[neighbor++];
      mass[static_cast<std::size_t>(labels.codes[static_cast<std::size_t>(ids[r])])] += weight;
      total += weight;
    }
    const auto best = std::max_element(mass.begin(), mass.end());
    result.codes.push_back(ids.empty() ? -1 : static_cast<std::int32_t>(best - mass.begin()));
    for (const double share : mass) result.probabilities.push_back(ids.empty() ? 0 : share / total);
  }
  return result;
}

}  // namespace vicinal::reference

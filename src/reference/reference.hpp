// The oracle: brute force written from docs/contract.md alone, slow and readable. It shares no code with the library
// (only the public headers' types), so that a mistake has to be made twice to go unseen. Clauses 1, 2, 5; votes as in
// vicinal/vote.hpp. Every list is a full sort by (key, id). Cost O(m n (d + log n)) time, O(m n) memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::reference {

/// What is asked. Metric and exponent of `minkowski`; who may be a neighbor.
struct Question {
  Metric metric = Metric::euclidean;
  double p = 2;
  bool self = false;                           ///< query i is table row i and not its own neighbor
  Bitmap filter = {};                          ///< empty: every row is eligible
  std::span<const std::int64_t> exclude = {};  ///< [m], -1 for none; empty: none
};

/// One candidate of one query.
struct Candidate {
  double key = 0;
  std::int64_t id = 0;
  double distance = 0;
};

/// Every eligible row of every query in (key, id) order: [m][eligible].
using Ranking = std::vector<std::vector<Candidate>>;

/// Rows as float64, row-major and contiguous: [rows * cols].
std::vector<double> widen(const TableView& table);

/// The key of one pair of rows of d float64 columns.
double key(Metric metric, double p, std::span<const double> x, std::span<const double> y);

/// A row at length one, as the cosine key wants it; empty for a row of zeros.
std::vector<double> unit_row(std::span<const double> x);
/// The cosine key of two such rows.
double cosine_of_units(std::span<const double> u, std::span<const double> v);

/// The distance reported for a key.
double distance_of(Metric metric, double p, double key);

/// The full answer, from which `knn`, `radius` and `count` are cut. `overflow` (when given) receives every (query, row)
/// whose key is not finite; such pairs are left out.
Ranking rank(const TableView& table, const TableView& queries, const Question& question,
             std::vector<std::pair<std::int64_t, std::int64_t>>* overflow = nullptr);

/// The first k of each list.
NeighborGraph knn(const Ranking& ranking, std::int64_t k);
/// All within the radius, inclusive on the reported distance, as CSR.
NeighborGraph radius(const Ranking& ranking, double radius);
std::vector<std::int64_t> count(const Ranking& ranking, double radius);
/// The same with a radius for each query, and by ascending id.
NeighborGraph radius(const Ranking& ranking, std::span<const double> radii);
std::vector<std::int64_t> count(const Ranking& ranking, std::span<const double> radii);
NeighborGraph by_id(NeighborGraph graph);

/// Winning classes and shares of the weight; a query without neighbors gets -1 and zeros.
/// `given`: for Weighting::given, one for each neighbor of the graph.
Vote vote(const NeighborGraph& graph, const Labels& labels, Weighting weights, std::span<const double> given = {});

}  // namespace vicinal::reference

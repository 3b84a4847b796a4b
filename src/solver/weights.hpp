// What each row's neighbors say of it: the blocks of rows of A for every variant of locally linear embedding (contract
// clause 17). A worker has a few rows at a time, in float64; nothing of size n k d is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/rows.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::solver {

struct LocalTask {
  const TableView& table;      ///< in host memory
  std::span<const Point> ids;  ///< [n, k]
  std::int64_t k = 0;
  std::int64_t dim = 0;
  LleVariant variant = LleVariant::standard;
  double reg = 0;
};

/// Rows that a block has at most.
std::int64_t block_rows(const LocalTask& task);

/// O(n (k^2 d + k^3)). Throws `bad_data` naming the row whose weights are not determined.
LocalRows local_rows(const Context& ctx, const LocalTask& task);

/// The same with columns alone, for rows that are made elsewhere.
LocalRows local_columns(const Context& ctx, const LocalTask& task);

/// Bytes that the workers take beside the result for the variant `standard`.
std::uint64_t weight_room_bytes(const Context& ctx, std::int64_t k, std::int64_t d);

/// Weights [k], their sum one, that make `row` [d] of `neighbors` [k, d]; both are used up, `gram` [k, k] is room.
/// False where they are not determined.
struct WeightRoom {
  std::vector<double> neighbors;
  std::vector<double> row;
  std::vector<double> gram;
};
bool barycentre(WeightRoom& room, std::int64_t k, std::int64_t d, double reg, double* weights);

/// A row's place: the sum of its neighbors' by its standard weights among them. For one worker.
class Placer {
 public:
  /// Of at most k neighbors among the rows of `table`.
  Placer(const TableView& table, std::int64_t k, double reg);

  /// [d] to be filled with the row.
  double* row() noexcept { return room_.row.data(); }
  void add(std::int64_t id);
  /// Of those added, which are forgotten: `place` [dim] from `places` [rows, dim]. False where weights are not
  /// determined.
  bool place(const double* places, std::int64_t dim, double* place);

 private:
  const TableView& table_;
  double reg_;
  WeightRoom room_;
  std::vector<double> weights_;
  std::vector<std::int64_t> kept_;
};

/// The largest over the least eigenvalue of the system that `barycentre` solves, from the same room: infinite where it
/// is singular. By the singular values of the differences, not their squares' sums. O(k^2 d + k^3).
double weight_condition(const Context& ctx, WeightRoom& room, std::int64_t k, std::int64_t d, double reg);

}  // namespace vicinal::solver

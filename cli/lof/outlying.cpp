// See outlying.hpp.
#include "lof/outlying.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/input.hpp"
#include "base/interrupt.hpp"

namespace vicinal::cli {
namespace {

std::vector<ColumnShare> shares_of(const std::vector<double>& differences, std::size_t most) {
  double largest = 0;
  for (const double difference : differences) largest = std::max(largest, std::fabs(difference));
  if (!(largest > 0) || !std::isfinite(largest)) return {};
  double sum = 0;
  std::vector<ColumnShare> shares;
  for (std::size_t j = 0; j < differences.size(); ++j) {
    const double part = differences[j] / largest;  // squares of what is large would overflow
    shares.push_back({static_cast<std::int64_t>(j), part * part});
    sum += part * part;
  }
  for (ColumnShare& one : shares) one.share /= sum;
  const std::size_t kept = std::min(most, shares.size());
  std::partial_sort(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(kept), shares.end(),
                    [](const ColumnShare& a, const ColumnShare& b) {
                      return a.share > b.share || (a.share == b.share && a.column < b.column);
                    });
  shares.resize(kept);
  while (!shares.empty() && !(shares.back().share > 0)) shares.pop_back();
  return shares;
}

}  // namespace

std::vector<std::int64_t> ranking(std::span<const double> scores) {
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    poll_interrupt();
    const double x = scores[static_cast<std::size_t>(a)];
    const double y = scores[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  });
  return order;
}

std::vector<std::vector<ColumnShare>> column_shares(const TableView& asked, std::span<const std::int64_t> rows,
                                                    const TableView& table, const NeighborGraph& neighbors,
                                                    std::size_t most) {
  const std::int64_t d = table.cols();
  std::vector<std::vector<ColumnShare>> found;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto ids = neighbors.ids_of(static_cast<std::int64_t>(i));
    std::vector<double> differences(static_cast<std::size_t>(d));
    for (std::int64_t j = 0; j < d; ++j) {
      double mean = 0;
      for (const std::int64_t id : ids) mean += value_at(table, id, j) / static_cast<double>(ids.size());
      differences[static_cast<std::size_t>(j)] = value_at(asked, rows[i], j) - mean;
    }
    found.push_back(shares_of(differences, most));
  }
  return found;
}

}  // namespace vicinal::cli

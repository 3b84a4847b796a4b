// See silhouette.hpp.
#include "kmeans/silhouette.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/input.hpp"
#include "base/output.hpp"
#include "core/philox.hpp"
#include "core/sampling.hpp"
#include "vicinal/kmeans.hpp"

namespace vicinal::cli {
namespace {

constexpr std::uint64_t kStream = 0x73696c68;
constexpr std::int64_t kRowsAtATime = 256;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Sample draw_sample(const TableView& table, std::int64_t most, std::uint64_t seed) {
  const std::int64_t n = table.rows();
  Sample sample;
  sample.cols = table.cols();
  if (n <= most) {
    sample.ids.resize(static_cast<std::size_t>(n));
    std::iota(sample.ids.begin(), sample.ids.end(), 0);
  } else {
    sample.ids = core::rows_without_replacement(
        n, most, [&, i = std::uint64_t{0}]() mutable { return core::philox_uniform(seed, kStream, i++); });
    std::sort(sample.ids.begin(), sample.ids.end());
  }
  sample.rows.reserve(sample.ids.size() * static_cast<std::size_t>(sample.cols));
  for (const std::int64_t i : sample.ids) {
    for (std::int64_t j = 0; j < sample.cols; ++j) sample.rows.push_back(value_at(table, i, j));
  }
  return sample;
}

Silhouettes::Silhouettes(const Context& ctx, const TableView& table, std::uint64_t seed) : ctx_(ctx) {
  const auto s = static_cast<std::uint64_t>(std::min(table.rows(), kSampleRows));
  const std::uint64_t bytes = s * (s + 2 * kRowsAtATime + static_cast<std::uint64_t>(table.cols())) * 8;
  if (bytes > ctx.memory_limit()) {
    throw Error(ErrorCode::over_memory, fmt::format("silhouettes of {} rows need {}, more than the memory limit of {}",
                                                    s, format_bytes(static_cast<double>(bytes)),
                                                    format_bytes(static_cast<double>(ctx.memory_limit()))));
  }
  sample_ = draw_sample(table, kSampleRows, seed);
}

void Silhouettes::find_distances() {
  const std::int64_t s = sample_.size();
  const std::int64_t cols = sample_.cols;
  KMeans all;  // every row a centre
  all.clusters = s;
  all.cols = cols;
  all.centres = sample_.rows;
  distances_.reserve(static_cast<std::size_t>(s * s));
  for (std::int64_t first = 0; first < s; first += kRowsAtATime) {
    const std::int64_t count = std::min(kRowsAtATime, s - first);
    ctx_.report("silhouettes", static_cast<double>(first) / static_cast<double>(s));
    const std::vector<double> block = transform(ctx_, all, TableView(sample_.rows.data() + first * cols, count, cols));
    distances_.insert(distances_.end(), block.begin(), block.end());
  }
}

Silhouette Silhouettes::of(std::span<const std::int32_t> labels, std::int64_t clusters) {
  if (distances_.empty()) find_distances();
  const auto s = static_cast<std::size_t>(sample_.size());
  const auto k = static_cast<std::size_t>(clusters);
  Silhouette found;
  found.of_cluster.assign(k, 0);
  std::vector<std::int64_t> sizes(k, 0);
  for (const std::int64_t id : sample_.ids) {
    found.labels.push_back(labels[static_cast<std::size_t>(id)]);
    ++sizes[static_cast<std::size_t>(found.labels.back())];
  }
  double total = 0;
  for (std::size_t i = 0; i < s; ++i) {
    std::vector<double> sums(k, 0);
    for (std::size_t j = 0; j < s; ++j) sums[static_cast<std::size_t>(found.labels[j])] += distances_[i * s + j];
    const auto own = static_cast<std::size_t>(found.labels[i]);
    const double within = sizes[own] > 1 ? sums[own] / static_cast<double>(sizes[own] - 1) : 0;
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < k; ++c) {
      if (c != own && sizes[c] > 0) nearest = std::min(nearest, sums[c] / static_cast<double>(sizes[c]));
    }
    const double larger = std::max(within, nearest);
    const bool decided = sizes[own] > 1 && larger > 0 && std::isfinite(nearest);
    found.of_row.push_back(decided ? (nearest - within) / larger : 0);
    found.of_cluster[own] += found.of_row.back();
    total += found.of_row.back();
  }
  std::size_t present = 0;
  for (std::size_t c = 0; c < k; ++c) {
    present += sizes[c] > 0 ? 1 : 0;
    found.of_cluster[c] = sizes[c] > 0 ? found.of_cluster[c] / static_cast<double>(sizes[c]) : kNaN;
  }
  found.mean = present > 1 ? total / static_cast<double>(s) : kNaN;
  return found;
}

}  // namespace vicinal::cli

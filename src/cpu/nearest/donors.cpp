// See donors.hpp. Donors are kept column by column in blocks of rows. A task takes some rows with missing
// values through all blocks, each row against a block by the kernel of simd/donor_kernels.hpp; what that lets through
// gets its key by the letter of clause 24 and goes to the lists of the columns that the row lacks and the donor has.
//
// The bound. Let T be the exact sum of squares of the rounded differences over the common columns, of which there are c
// <= q, q the columns that the row has. All terms are at least 0, so each rounded sum of d terms is within a factor of
// (1 + u)^(d + 3), u = 2^-53, of T, and within d 2^-1074 where products are subnormal: that of the kernel and S of
// clause 24 alike. The key is S / c, rounded. A donor that belongs to a list whose worst key is w has S <= c w (1 + u)
// <= q w (1 + u), so the kernel's sum is at most q w (1 + (2 d + 8) u) and some 2^-1070. The limit is q w (1 + 8 (d +
// 16) u) + 2^-1000, computed by three rounded operations, and infinite where that overflows.
#include "cpu/nearest/donors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "simd/donor_kernels.hpp"

namespace vicinal::cpu {
namespace {

using kernels::DonorTask;

constexpr std::int64_t kRowsPerTask = 32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Clause 24's key, or NaN without a common column.
double donor_key(std::span<const std::int64_t> compared, const double* x, const double* y) {
  std::array<double, 8> a{};
  std::int64_t common = 0;
  for (const std::int64_t j : compared) {
    const double t = x[j] - y[j];
    if (std::isnan(t)) continue;
    double& sum = a[static_cast<std::size_t>(j % 8)];
    sum = std::fma(t, t, sum);
    ++common;
  }
  const double sum = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
  return sum / static_cast<double>(common);
}

/// The k nearest donors of one missing value: the worst is in front.
struct DonorList {
  std::int64_t column = 0;
  std::vector<std::pair<double, std::int64_t>> nearest;  // key, id

  [[nodiscard]] double worst(std::size_t k) const { return nearest.size() < k ? kInfinity : nearest.front().first; }
  void offer(double key, std::int64_t id, std::size_t k) {
    const std::pair one(key, id);
    if (nearest.size() == k) {
      if (!(one < nearest.front())) return;
      std::pop_heap(nearest.begin(), nearest.end());
      nearest.pop_back();
    }
    nearest.push_back(one);
    std::push_heap(nearest.begin(), nearest.end());
  }
};

/// A row with missing values on its way through the blocks.
class Receiver {
 public:
  Receiver(const DonorTask& task, double* row) : task_(task), row_(row) {
    for (const std::int64_t j : task.compared) {
      if (std::isnan(row[j])) {
        lists_.emplace_back().column = j;
      } else {
        columns_.push_back(j);
        values_.push_back(row[j]);
      }
    }
    set_limit();
  }

  void meet(NearDonorsFn near_donors, const double* block, std::int64_t first, std::int64_t rows) {
    if (values_.empty()) return;  // nothing in common with any
    std::array<std::int32_t, kDonorRows> near;
    const DonorQuery query{values_.data(), columns_.data(), static_cast<std::int64_t>(values_.size()), limit_};
    const std::int64_t found = near_donors(query, block, near.data());
    const auto k = static_cast<std::size_t>(task_.k);
    for (std::int64_t i = 0; i < found; ++i) {
      const std::int64_t id = first + near[static_cast<std::size_t>(i)];
      if (id >= first + rows) break;  // padding
      const double* const donor = task_.donors.data() + id * task_.cols;
      const double key = donor_key(task_.compared, row_, donor);
      if (std::isnan(key)) continue;
      for (DonorList& list : lists_) {
        if (!std::isnan(donor[list.column])) list.offer(key, id, k);
      }
    }
    if (found > 0) set_limit();
  }

  void fill() const {
    for (const DonorList& list : lists_) {
      kernels::DonorMean mean(task_, list.column);
      for (const auto& [key, id] : list.nearest) mean.add(id);
      row_[list.column] = mean.value();
    }
  }

 private:
  void set_limit() {
    double worst = 0;
    for (const DonorList& list : lists_) worst = std::max(worst, list.worst(static_cast<std::size_t>(task_.k)));
    const double slack = 1 + 0x1p-50 * static_cast<double>(task_.cols + 16);
    limit_ = worst * static_cast<double>(values_.size()) * slack + 0x1p-1000;
  }

  const DonorTask& task_;
  double* row_;
  double limit_ = kInfinity;
  std::vector<std::int64_t> columns_;
  std::vector<double> values_;
  std::vector<DonorList> lists_;
};

}  // namespace

kernels::MemoryNeed CpuDonors::bytes(const Context& ctx, const kernels::DonorShape& shape) const {
  const auto n = static_cast<std::uint64_t>(shape.donors);
  const auto d = static_cast<std::uint64_t>(shape.cols);
  const auto tasks = static_cast<std::uint64_t>((shape.rows + kRowsPerTask - 1) / kRowsPerTask);
  const std::uint64_t busy = std::min(static_cast<std::uint64_t>(ctx.threads()), tasks);
  const std::uint64_t listed = std::min<std::uint64_t>(static_cast<std::uint64_t>(shape.k), n);
  const std::uint64_t row = sizeof(Receiver) + d * (16 + sizeof(DonorList) + 32 * listed);
  return {(n + static_cast<std::uint64_t>(kDonorRows)) * d * sizeof(double) +
              busy * static_cast<std::uint64_t>(kRowsPerTask) * row,
          0};
}

void CpuDonors::fill(const Context& ctx, const DonorTask& task, std::span<const std::int64_t> rows,
                     double* values) const {
  const std::int64_t d = task.cols;
  const std::int64_t n = static_cast<std::int64_t>(task.donors.size()) / d;
  const std::int64_t blocks = (n + kDonorRows - 1) / kDonorRows;
  core::RawVector<double> columns(static_cast<std::size_t>(blocks * kDonorRows * d));
  core::parallel_for(ctx, blocks, [&](std::int64_t block, int /*worker*/) {
    double* const to = columns.data() + block * kDonorRows * d;
    for (std::int64_t i = 0; i < kDonorRows; ++i) {
      const std::int64_t id = block * kDonorRows + i;
      for (std::int64_t j = 0; j < d; ++j) {
        to[j * kDonorRows + i] =
            id < n ? task.donors[static_cast<std::size_t>(id * d + j)] : std::numeric_limits<double>::quiet_NaN();
      }
    }
  });
  const NearDonorsFn near_donors = cpu::near_donors(ctx.isa());
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t tasks = (count + kRowsPerTask - 1) / kRowsPerTask;
  core::parallel_for(ctx, tasks, [&](std::int64_t number, int worker) {
    std::vector<Receiver> receivers;
    receivers.reserve(kRowsPerTask);
    for (std::int64_t i = number * kRowsPerTask; i < std::min(count, (number + 1) * kRowsPerTask); ++i) {
      receivers.emplace_back(task, values + rows[static_cast<std::size_t>(i)] * d);
    }
    for (std::int64_t block = 0; block < blocks; ++block) {
      ctx.check_cancelled();
      const std::int64_t first = block * kDonorRows;
      for (Receiver& receiver : receivers) {
        receiver.meet(near_donors, columns.data() + first * d, first, std::min(kDonorRows, n - first));
      }
    }
    for (const Receiver& receiver : receivers) receiver.fill();
    if (worker == 0) ctx.report("impute", static_cast<double>(number) / static_cast<double>(tasks));
  });
}

}  // namespace vicinal::cpu

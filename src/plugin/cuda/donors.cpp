// See donors.hpp. The device finds the donors of a batch of rows, and the host makes the means: their exact sums depend
// on no order.
#include "plugin/cuda/donors.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "core/poll.hpp"
#include "plugin/abi/donors.hpp"
#include "plugin/cuda/staging.hpp"

namespace vicinal::plugin {
namespace {

constexpr std::int64_t kFilledRows = 256;  // of a thread's task

/// Rows that lack values, and what is made of the donors that the device finds for them.
class Lacking {
 public:
  Lacking(const Context& ctx, const kernels::DonorTask& task, std::span<const std::int64_t> rows, double* values)
      : task_(task), rows_(rows), values_(values), compared_(static_cast<std::size_t>(task.cols)), offsets_(1) {
    for (const std::int64_t j : task.compared) compared_[static_cast<std::size_t>(j)] = 1;
    offsets_.reserve(rows.size() + 1);
    core::Poll poll(ctx);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double* const row = at(static_cast<std::int64_t>(i));
      const auto lacks = [&poll, row](std::int64_t j) {
        poll.step();
        return std::isnan(row[j]);
      };
      offsets_.push_back(offsets_.back() + std::count_if(task.compared.begin(), task.compared.end(), lacks));
    }
  }

  [[nodiscard]] TableView table() const {
    return TableView::blocks(DType::float64, static_cast<std::int64_t>(rows_.size()), task_.cols,
                             [this](std::int64_t begin, std::int64_t end, void* to) {
                               for (std::int64_t i = begin; i < end; ++i) {
                                 std::copy_n(at(i), task_.cols, static_cast<double*>(to) + (i - begin) * task_.cols);
                               }
                             });
  }
  void describe_to(DonorSearch& asked) const {
    asked.compared = compared_.data();
    asked.offsets = offsets_.data();
    asked.missing = offsets_.back();
    asked.k = task_.k;
  }

  /// As DonorSearch::take.
  void fill(const Context& ctx, std::int64_t first, std::int64_t count, const std::int64_t* sizes,
            const std::int64_t* ids) const {
    core::parallel_for(ctx, (count + kFilledRows - 1) / kFilledRows, [&](std::int64_t number, int /*worker*/) {
      const std::int64_t end = first + std::min(count, (number + 1) * kFilledRows);
      core::Poll poll(ctx);
      for (std::int64_t i = first + number * kFilledRows; i < end; ++i) {
        std::int64_t slot = offsets_[static_cast<std::size_t>(i)] - offsets_[static_cast<std::size_t>(first)];
        for (const std::int64_t j : task_.compared) {
          double& value = at(i)[j];
          if (!std::isnan(value)) continue;
          kernels::DonorMean mean(task_, j);
          for (std::int64_t one = 0; one < sizes[slot]; ++one) {
            poll.step();
            mean.add(ids[slot * task_.k + one]);
          }
          value = mean.value();
          ++slot;
        }
      }
    });
  }

 private:
  [[nodiscard]] double* at(std::int64_t i) const { return values_ + rows_[static_cast<std::size_t>(i)] * task_.cols; }

  const kernels::DonorTask& task_;
  std::span<const std::int64_t> rows_;
  double* values_;
  std::vector<std::uint8_t> compared_;
  std::vector<std::int64_t> offsets_;
};

/// What `take` needs.
struct Taker {
  Call& call;
  const Lacking& rows;

  static std::int32_t take(void* user, std::int64_t first, std::int64_t count, const std::int64_t* sizes,
                           const std::int64_t* ids) {
    const Taker& taker = *static_cast<Taker*>(user);
    return taker.call.keep([&] { taker.rows.fill(taker.call.context(), first, count, sizes, ids); });
  }
};

/// A table by its shape.
TableView shape_only(std::int64_t rows, std::int64_t cols) {
  static constexpr double kZero = 0;
  return {&kZero, DType::float64, rows, cols, 0, 0};
}

}  // namespace

kernels::MemoryNeed CudaDonors::bytes(const Context& /*ctx*/, const kernels::DonorShape& shape) const {
  const TableView donors = shape_only(shape.donors, shape.cols);
  const TableView rows = shape_only(shape.rows, shape.cols);
  DonorSearch asked;
  asked.donors = BorrowedTable::shape_of(donors);
  asked.rows = BorrowedTable::shape_of(rows);
  asked.missing = shape.missing;
  asked.k = shape.k;
  DonorRoom room;
  Status status;
  device_->functions().donor_bytes(device_->engine(), &asked, &room, &status);
  device_->check(status);
  const auto offsets = static_cast<std::uint64_t>(shape.rows + 1) * sizeof(std::int64_t);
  return {std::max(staging_bytes(donors), staging_bytes(rows)) + offsets + static_cast<std::uint64_t>(shape.cols) +
              room.host,
          room.device};
}

void CudaDonors::fill(const Context& ctx, const kernels::DonorTask& task, std::span<const std::int64_t> rows,
                      double* values) const {
  const TableView donors(task.donors.data(), static_cast<std::int64_t>(task.donors.size()) / task.cols, task.cols);
  const Lacking lacking(ctx, task, rows, values);
  const TableView table = lacking.table();
  device_->use(ctx, [&](void* engine, Call& call, Status& status) {
    const BorrowedTable all(call, donors);
    const BorrowedTable some(call, table);
    Taker taker{call, lacking};
    DonorSearch asked;
    asked.donors = all.table();
    asked.rows = some.table();
    lacking.describe_to(asked);
    asked.take = Taker::take;
    asked.user = &taker;
    const HostCalls host = call.host();
    device_->functions().find_donors(engine, &host, &asked, &status);
  });
}

}  // namespace vicinal::plugin

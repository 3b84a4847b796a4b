// See donors.hpp. Rows that lack values pass in batches; each batch meets all donors, some thousands at a time. A
// thread has one donor and eight rows, whose keys of clause 24 it forms bit for bit, one accumulator after the other
// (accumulators.cuh). What may belong to the list of a missing value, its k nearest donors so far, is kept there, and
// the lists take it in (select.hpp). So each key is formed once however many values a row lacks, nearly nothing is
// written after the first donors, and memory is O(k) a missing value of the batch. O(m n d) float64 operations.
//
// The bound. A donor belongs to a list only if its key S / c, rounded, is at most the list's limit L, where S is the
// sum and c the number of common columns. Then S <= c L (1 + 2 u) + c 2^-1074, u = 2^-53. The division is spared to a
// pair whose S is above c L (1 + 8 u) + 2^-1000, L the largest limit of the row's lists: three rounded operations take
// less than 4 u of it, and c is less than 2^60.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/base/memory.hpp"
#include "cuda/base/metric_ops.cuh"
#include "cuda/nearest/accumulators.cuh"
#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/donors.hpp"
#include "cuda/nearest/keys.hpp"
#include "cuda/nearest/select.hpp"

namespace vicinal::cuda {
namespace {

constexpr int kRowsOfThread = 8;
constexpr int kRowsOfBlock = 4 * kRowsOfThread;                 // its threads' donors stay in the cache meanwhile
constexpr std::int64_t kPadding = 32;                           // what strides are multiples of
constexpr std::int64_t kMaxSlots = 8192;                        // missing values of a batch
constexpr std::int64_t kFirstDonors = 512;                      // that lists meet first: each of these may be kept
constexpr std::int64_t kMaxDonors = 4096;                       // of one launch, where there are rows enough
constexpr std::int64_t kMinDonors = 256;                        // of one launch, and on the device
constexpr double kPairWork = 5e9;                               // columns of pairs of one launch: some milliseconds
constexpr double kColumnsOfPair = 8;                            // that a pair costs besides its own
constexpr std::uint64_t kListBytes = std::uint64_t{768} << 20;  // more does not make it faster
constexpr std::uint64_t kRowBytes = std::uint64_t{128} << 20;   // nor do more rows of many columns

std::int64_t padded(std::int64_t count) {
  return (count + kPadding - 1) / kPadding * kPadding;
}

/// What is on the device at a time: rows that lack values and a place for each value, donors, and those of a launch.
struct DonorSizes {
  std::int64_t rows = 0;
  std::int64_t slots = 0;
  std::int64_t part = 0;
  std::int64_t step = 0;
  std::uint64_t bytes = 0;

  DonorSizes(const plugin::DonorSearch& task, std::uint64_t limit) : d_(task.donors.cols), k_(task.k) {
    const std::int64_t n = task.donors.rows;
    min_slots_ = std::min(task.missing, d_);
    min_step_ = std::min(n, kMinDonors);
    slots = std::max(min_slots_, std::min(task.missing, kMaxSlots));
    rows = std::min(task.rows.rows, slots);
    while (rows > 1 && of_rows() > kRowBytes) rows = (rows + 1) / 2;
    part = n;
    const auto room = static_cast<std::int64_t>(kListBytes / 16) / std::max<std::int64_t>(1, slots);
    const double pairs = kPairWork / (static_cast<double>(d_) + kColumnsOfPair) / static_cast<double>(rows);
    step = std::min(n, std::max(kMaxDonors, room));
    if (static_cast<double>(step) > pairs) step = std::max(min_step_, static_cast<std::int64_t>(pairs));
    while (!fits(limit)) shrink(limit);
  }

  /// Bytes that one batch's results take on the host.
  [[nodiscard]] std::uint64_t results() const { return product(slots, (k_ + 1) * 8) + product(rows + 1, 8); }

 private:
  static std::uint64_t product(std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  }
  [[nodiscard]] std::uint64_t of_lists() const {
    return product(slots, (k_ + step) * 16 + std::min(k_, step) * 4 + 28);
  }
  [[nodiscard]] std::uint64_t of_rows() const { return product(rows + padded(rows), d_ * 8) + product(rows + 1, 16); }
  [[nodiscard]] std::uint64_t of_donors() const { return product(part + padded(step), d_ * 8); }
  [[nodiscard]] bool lists_shrink() const { return step > min_step_ || slots > min_slots_; }

  bool fits(std::uint64_t limit) {
    bytes = of_lists() + of_rows() + of_donors() + product(d_, 1) + 8192;
    return bytes <= limit && (of_lists() <= kListBytes || !lists_shrink());
  }
  /// Halves what takes most.
  void shrink(std::uint64_t limit) {
    const bool lists = lists_shrink() && (of_lists() > kListBytes || of_lists() >= std::max(of_rows(), of_donors()));
    if (lists && step > min_step_ && (step > k_ || slots == min_slots_)) {
      step = std::max(min_step_, step / 2);
    } else if (lists && slots > min_slots_) {
      slots = std::max(min_slots_, slots / 2);
      rows = std::min(rows, slots);
    } else if (part > min_step_ && (of_donors() >= of_rows() || rows == 1)) {
      part = std::max(min_step_, part / 2);
      step = std::min(step, part);
    } else if (rows > 1) {
      rows = (rows + 1) / 2;
    } else if (lists_shrink()) {
      slots = min_slots_;
      step = min_step_;
    } else {
      refuse_memory(bytes, limit);
    }
  }

  std::int64_t d_;
  std::int64_t k_;
  std::int64_t min_slots_ = 0;
  std::int64_t min_step_ = 0;
};

/// Rows of a batch as they were uploaded: what is not compared becomes NaN; and the columns that each lacks, by their
/// places in packed rows.
__global__ void outline_kernel(double* rows, std::int64_t count, std::int64_t d, const std::uint8_t* compared,
                               const std::int64_t* offsets, std::int32_t* columns) {
  const std::int64_t r = own_number();
  if (r >= count) return;
  std::int64_t slot = offsets[r];
  for (std::int64_t j = 0; j < d; ++j) {
    double& value = rows[r * d + j];
    if (compared[j] == 0) {
      value = NAN;
    } else if (isnan(value) && slot < offsets[r + 1]) {
      columns[slot++] = static_cast<std::int32_t>(packed_column(j, d));
    }
  }
}

/// Of the bound at the top of this file what belongs to a row: L (1 + 8 u).
__global__ void bound_kernel(const double* limits, const std::int64_t* offsets, std::int64_t count, double* bounds) {
  const std::int64_t r = own_number();
  if (r >= count) return;
  double worst = -INFINITY;
  for (std::int64_t slot = offsets[r]; slot < offsets[r + 1]; ++slot) worst = fmax(worst, limits[slot]);
  bounds[r] = worst * (1 + 0x1p-50);
}

/// Donors and rows, packed, and where their keys go.
struct Meeting {
  const double* donors = nullptr;  // [d, donor_stride]
  std::int64_t donor_stride = 0;
  std::int64_t donor_count = 0;
  std::int64_t first_id = 0;
  const double* rows = nullptr;  // [d, row_stride]
  std::int64_t row_stride = 0;
  std::int64_t row_count = 0;
  std::int64_t d = 0;
  const double* bounds = nullptr;         // [rows]
  const std::int64_t* offsets = nullptr;  // [rows + 1] of their slots
  const std::int32_t* columns = nullptr;  // [slots]
  const double* limits = nullptr;         // [slots]
  unsigned long long* counts = nullptr;   // [slots]
  double* keys = nullptr;                 // [slots, room]
  std::int64_t* ids = nullptr;
  std::int64_t room = 0;
};

/// A key that may belong to lists of a row: to those of the values that the donor has.
__device__ void offer(const Meeting& meeting, std::int64_t row, std::int64_t donor, double key) {
  for (std::int64_t slot = meeting.offsets[row]; slot < meeting.offsets[row + 1]; ++slot) {
    if (!(key <= meeting.limits[slot])) continue;
    if (isnan(meeting.donors[meeting.columns[slot] * meeting.donor_stride + donor])) continue;
    const auto at = static_cast<std::int64_t>(atomicAdd(&meeting.counts[slot], 1ULL));
    meeting.keys[slot * meeting.room + at] = key;
    meeting.ids[slot * meeting.room + at] = meeting.first_id + donor;
  }
}

__global__ void __launch_bounds__(kThreads) meet_kernel(const __grid_constant__ Meeting meeting) {
  const std::int64_t number = own_number();
  const bool is_donor = number < meeting.donor_count;
  const std::int64_t donor = is_donor ? number : 0;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * kRowsOfBlock;
  const std::int64_t end = min(begin + kRowsOfBlock, meeting.row_count);
  for (std::int64_t row = begin; row < end; row += kRowsOfThread) {
    double left[kRowsOfThread];
    double right[kRowsOfThread];
    double last[kRowsOfThread];
    std::int32_t common[kRowsOfThread] = {};
    const double* y = meeting.donors + donor;
    const double* x = meeting.rows + row;
#pragma unroll
    for (int place = 0; place < 8; ++place) {
      double a[kRowsOfThread] = {};
      const std::int64_t columns = columns_at(place, meeting.d);
      for (std::int64_t c = 0; c < columns; ++c) {
        const double value = *y;
#pragma unroll
        for (int i = 0; i < kRowsOfThread; i += 2) {
          const double2 two = *reinterpret_cast<const double2*>(x + i);
          const double t = two.x - value;
          const double u = two.y - value;
          if (!isnan(t)) {
            Squares::add(a[i], t, 2);
            ++common[i];
          }
          if (!isnan(u)) {
            Squares::add(a[i + 1], u, 2);
            ++common[i + 1];
          }
        }
        y += meeting.donor_stride;
        x += meeting.row_stride;
      }
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i) join_at<Squares>(place, a[i], left[i], right[i], last[i]);
    }
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      if (!is_donor || row + i >= end || common[i] == 0) continue;
      const auto c = static_cast<double>(common[i]);
      if (left[i] <= meeting.bounds[row + i] * c + 0x1p-1000) offer(meeting, row + i, donor, left[i] / c);
    }
  }
}

class DonorRun {
 public:
  DonorRun(Session& session, const Host& host, const plugin::DonorSearch& task)
      : session_(session),
        engine_(session.engine),
        task_(task),
        d_(task.donors.cols),
        sizes_(task, left_of_limit(session)),
        compared_(uploaded(engine_, task.compared, d_)),
        donors_(engine_, sizes_.part * d_),
        rows_(engine_, sizes_.rows * d_),
        packed_donors_(engine_, padded(sizes_.step) * d_),
        packed_rows_(engine_, padded(sizes_.rows) * d_),
        offsets_(engine_, sizes_.rows + 1),
        bounds_(engine_, sizes_.rows),
        columns_(engine_, sizes_.slots),
        list_keys_(engine_, sizes_.slots * task.k),
        list_ids_(engine_, sizes_.slots * task.k),
        list_sizes_(engine_, sizes_.slots),
        limits_(engine_, sizes_.slots),
        keys_(engine_, sizes_.slots * sizes_.step),
        ids_(engine_, sizes_.slots * sizes_.step),
        counts_(engine_, sizes_.slots),
        holes_(engine_, sizes_.slots * std::min(task.k, sizes_.step)) {
    engine_.host = host;
    counts_.zero();
    list_ids_.zero();  // short lists are copied to the host with what lies behind them
  }

  void run() {
    Pace pace(engine_);
    const std::int64_t m = task_.rows.rows;
    for (std::int64_t first = 0; first < m;) {
      const std::int64_t count = rows_from(first);
      take_rows(first, count);
      for (std::int64_t begin = 0; begin < task_.donors.rows; begin += sizes_.part) {
        const std::int64_t end = std::min(task_.donors.rows, begin + sizes_.part);
        take_donors(begin, end);
        for (std::int64_t id = begin; id < end;) {
          const std::int64_t next = std::min(end, id + donors_after(id));
          meet(id - begin, next - id, id, count);
          id = next;
          pace.step();
          const double share = static_cast<double>(id) / static_cast<double>(task_.donors.rows);
          engine_.host.progress(
              "impute", (static_cast<double>(first) + static_cast<double>(count) * share) / static_cast<double>(m));
        }
      }
      hand_over(first, count);
      first += count;
    }
  }

 private:
  /// How many rows make the next batch: those whose missing values have slots.
  [[nodiscard]] std::int64_t rows_from(std::int64_t first) const {
    const std::int64_t most = std::min(task_.rows.rows, first + sizes_.rows);
    const auto* const end =
        std::upper_bound(task_.offsets + first + 1, task_.offsets + most + 1, task_.offsets[first] + sizes_.slots);
    const std::int64_t count = end - (task_.offsets + first + 1);
    if (count < 1) throw Failure{ErrorCode::internal, "a row that lacks more values than there are columns"};
    return count;
  }
  [[nodiscard]] std::int64_t slots() const { return host_offsets_.back(); }
  /// Donors of a launch: few at first, of which each may be kept, then as many as were met before.
  [[nodiscard]] std::int64_t donors_after(std::int64_t met) const {
    return std::min(sizes_.step, std::max(met, kFirstDonors));
  }

  void take_rows(std::int64_t first, std::int64_t count) {
    host_offsets_.clear();
    for (std::int64_t i = 0; i <= count; ++i) {
      host_offsets_.push_back(task_.offsets[first + i] - task_.offsets[first]);
    }
    upload_rows(session_, task_.rows, first, first + count, rows_.data(), engine_.stream);
    to_device(engine_, offsets_.data(), host_offsets_.data(), count + 1);
    outline_kernel<<<blocks_for(count, kThreads), kThreads, 0, engine_.stream>>>(
        rows_.data(), count, d_, compared_.data(), offsets_.data(), columns_.data());
    check_launch("look at rows");
    PackedRows packed{packed_rows_.data(), nullptr, 0, padded(sizes_.rows)};
    pack_rows(engine_, Metric::euclidean, {rows_.data(), DType::float64, count, d_}, 0, count, packed);
    if (slots() > 0) clear_lists(engine_, lists(), slots());
  }

  /// Donors [begin, end), unless they are there.
  void take_donors(std::int64_t begin, std::int64_t end) {
    if (first_donor_ == begin) return;
    upload_rows(session_, task_.donors, begin, end, donors_.data(), engine_.stream);
    first_donor_ = begin;
    part_rows_ = end - begin;
  }

  /// `count` donors, of which the first lies at `at` and has the number `id`, meet the batch.
  void meet(std::int64_t at, std::int64_t count, std::int64_t id, std::int64_t rows) {
    if (slots() == 0) return;
    PackedRows packed{packed_donors_.data(), nullptr, 0, padded(sizes_.step)};
    pack_rows(engine_, Metric::euclidean, {donors_.data(), DType::float64, part_rows_, d_}, at, count, packed);
    bound_kernel<<<blocks_for(rows, kThreads), kThreads, 0, engine_.stream>>>(limits_.data(), offsets_.data(), rows,
                                                                              bounds_.data());
    check_launch("bounds of rows");
    Meeting meeting;
    meeting.donors = packed.values;
    meeting.donor_stride = packed.stride;
    meeting.donor_count = count;
    meeting.first_id = id;
    meeting.rows = packed_rows_.data();
    meeting.row_stride = padded(sizes_.rows);
    meeting.row_count = rows;
    meeting.d = d_;
    meeting.bounds = bounds_.data();
    meeting.offsets = offsets_.data();
    meeting.columns = columns_.data();
    meeting.limits = limits_.data();
    meeting.counts = counts_.data();
    meeting.keys = keys_.data();
    meeting.ids = ids_.data();
    meeting.room = sizes_.step;
    const dim3 grid(blocks_for(count, kThreads), blocks_for(rows, kRowsOfBlock));
    meet_kernel<<<grid, kThreads, 0, engine_.stream>>>(meeting);
    check_launch("keys of donors");
    take_candidates(engine_, lists(), {keys_.data(), ids_.data(), counts_.data(), sizes_.step, holes_.data()}, slots());
  }

  void hand_over(std::int64_t first, std::int64_t count) {
    host_sizes_.resize(static_cast<std::size_t>(slots()));
    host_ids_.resize(static_cast<std::size_t>(slots() * task_.k));
    to_host(engine_, host_sizes_.data(), list_sizes_.data(), slots());
    to_host(engine_, host_ids_.data(), list_ids_.data(), slots() * task_.k);
    engine_.synchronize();
    if (task_.take(task_.user, first, count, host_sizes_.data(), host_ids_.data()) != 0) throw HostFailure{};
  }

  [[nodiscard]] RunningLists lists() const {
    return {task_.k, list_keys_.data(), list_ids_.data(), list_sizes_.data(), limits_.data()};
  }

  Session& session_;
  Engine engine_;
  const plugin::DonorSearch& task_;
  std::int64_t d_;
  DonorSizes sizes_;
  Buffer<std::uint8_t> compared_;
  Buffer<double> donors_;  // [part, d]
  Buffer<double> rows_;    // [rows, d]
  Buffer<double> packed_donors_;
  Buffer<double> packed_rows_;
  Buffer<std::int64_t> offsets_;
  Buffer<double> bounds_;
  Buffer<std::int32_t> columns_;
  Buffer<double> list_keys_;
  Buffer<std::int64_t> list_ids_;
  Buffer<std::int64_t> list_sizes_;
  Buffer<double> limits_;
  Buffer<double> keys_;
  Buffer<std::int64_t> ids_;
  Buffer<unsigned long long> counts_;
  Buffer<std::int32_t> holes_;
  std::int64_t first_donor_ = -1;
  std::int64_t part_rows_ = 0;
  std::vector<std::int64_t> host_offsets_;
  std::vector<std::int64_t> host_sizes_;
  std::vector<std::int64_t> host_ids_;
};

}  // namespace

void find_donors(Session& session, const Host& host, const plugin::DonorSearch& task) {
  DonorRun(session, host, task).run();
}

plugin::DonorRoom donor_bytes(const Session& session, const plugin::DonorSearch& task) {
  const DonorSizes sizes(task, left_of_limit(session));
  return {sizes.bytes, sizes.results()};
}

}  // namespace vicinal::cuda

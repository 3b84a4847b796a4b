// See seeding.hpp. An attempt reads the table once for all its rows. Cost O(n d) a row attempted; memory 8 n (attempts
// + 1).
#include "cpu/seeding.hpp"

#include <algorithm>
#include <numeric>

#include "core/masses.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "cpu/row_reader.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kChunk = core::kMassChunk;

// Least keys, and the masses of the chunks.
struct Nearest {
  std::vector<double> keys;    // [n]
  std::vector<double> chunks;  // [chunks]

  [[nodiscard]] double total() const { return std::accumulate(chunks.begin(), chunks.end(), 0.0); }
};

class CpuSeeding final : public kernels::Seeding {
 public:
  CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials);

  std::int64_t draw(double u) override;
  void attempt(std::span<const std::int64_t> rows, std::span<double> totals) override;
  void take(std::size_t attempt) override {
    std::swap(nearest_, attempts_[attempt]);
    chosen_ = true;
  }

 private:
  struct Worker {
    RowReader reader;
    std::vector<const void*> rows;
  };

  [[nodiscard]] double mass(std::int64_t row, double key) const {
    return task_.weights.empty() ? key : task_.weights[static_cast<std::size_t>(row)] * key;
  }
  // Adds the masses of the chunk that begins at row `first`.
  [[nodiscard]] double chunk_mass(const std::vector<double>& keys, std::int64_t first) const {
    return core::chunk_mass(first, n_, [&](std::int64_t i) { return mass(i, keys[static_cast<std::size_t>(i)]); });
  }

  Context ctx_;
  kernels::ClusterTask task_;
  std::int64_t n_;
  std::int64_t d_;
  KeysFn keys_of_;
  bool chosen_ = false;  // a centre; until then every key counts as 1
  Nearest nearest_;
  std::vector<Nearest> attempts_;
  std::vector<Worker> workers_;
};

CpuSeeding::CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials)
    : ctx_(ctx),
      task_(task),
      n_(task.table.rows()),
      d_(task.table.cols()),
      keys_of_(
          simd_kernels(ctx.isa()).keys[static_cast<int>(KeyOp::squares)][static_cast<int>(row_element(task.table))]),
      attempts_(static_cast<std::size_t>(trials)),
      workers_(static_cast<std::size_t>(ctx.threads())) {
  const std::int64_t chunks = (n_ + kChunk - 1) / kChunk;
  nearest_.keys.assign(static_cast<std::size_t>(n_), 1);
  for (std::int64_t c = 0; c < chunks; ++c) nearest_.chunks.push_back(chunk_mass(nearest_.keys, c * kChunk));
  for (Nearest& attempt : attempts_) {
    attempt.keys.resize(nearest_.keys.size());
    attempt.chunks.resize(nearest_.chunks.size());
  }
}

std::int64_t CpuSeeding::draw(double u) {
  return core::drawn_row(u, n_, core::running_masses(nearest_.chunks),
                         [&](std::int64_t i) { return mass(i, nearest_.keys[static_cast<std::size_t>(i)]); });
}

void CpuSeeding::attempt(std::span<const std::int64_t> rows, std::span<double> totals) {
  const std::int64_t padded = (d_ + 7) / 8 * 8;
  std::vector<double> centres(rows.size() * static_cast<std::size_t>(padded));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    core::widen_rows(task_.table, rows[t], rows[t] + 1, centres.data() + t * static_cast<std::size_t>(padded));
  }
  for_each_part(ctx_, task_.table, [&](const TableView& part, std::int64_t first) {
    core::parallel_for(ctx_, (part.rows() + kChunk - 1) / kChunk, [&](std::int64_t chunk, int w) {
      Worker& worker = workers_[static_cast<std::size_t>(w)];
      const std::int64_t begin = chunk * kChunk;
      const std::int64_t end = std::min(begin + kChunk, part.rows());
      worker.reader.open(part, begin, end);
      worker.rows.clear();
      for (std::int64_t i = begin; i < end; ++i) worker.rows.push_back(worker.reader.row(i));
      for (std::size_t t = 0; t < rows.size(); ++t) {
        double* const keys = attempts_[t].keys.data() + first + begin;
        keys_of_(centres.data() + t * static_cast<std::size_t>(padded), worker.rows.data(), end - begin, d_, keys);
        if (chosen_) {
          const double* const before = nearest_.keys.data() + first + begin;
          for (std::int64_t i = 0; i < end - begin; ++i) keys[i] = std::min(keys[i], before[i]);
        }
        attempts_[t].chunks[static_cast<std::size_t>((first + begin) / kChunk)] =
            chunk_mass(attempts_[t].keys, first + begin);
      }
    });
  });
  for (std::size_t t = 0; t < rows.size(); ++t) totals[t] = attempts_[t].total();
}

}  // namespace

std::unique_ptr<kernels::Seeding> make_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                               std::int64_t trials) {
  return std::make_unique<CpuSeeding>(ctx, task, trials);
}

std::uint64_t seeding_scratch(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) {
  const auto n = static_cast<std::uint64_t>(task.table.rows());
  const auto d = static_cast<std::uint64_t>(task.table.cols());
  const std::uint64_t widened = row_element(task.table) == Element::float32 ? 0 : kChunk * d * sizeof(double);
  return (n + n / kChunk + 1) * 8 * static_cast<std::uint64_t>(trials + 1) + part_bytes(task.table) +
         static_cast<std::uint64_t>(ctx.threads()) * (widened + kChunk * sizeof(void*));
}

}  // namespace vicinal::cpu

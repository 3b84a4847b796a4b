// See seeding.hpp.
#include "cpu/kmeans/seeding.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/kmeans/row_masses.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "cpu/kmeans/seeding_screen.hpp"

namespace vicinal::cpu {
namespace {

class CpuSeeding final : public kernels::Seeding {
 public:
  CpuSeeding(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials)
      : lloyd_(lloyd), n_(task.table.rows()), d_(task.table.cols()), masses_(ctx, task, lloyd, trials, 0) {}

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void choose(std::span<const double> draws, std::span<std::int64_t> rows) override;
  void meet(std::span<const std::int64_t> rows) override { masses_.meet(values_of(rows)); }
  double total() const override { return masses_.sums(RowMasses::kAsTheyAre).back(); }
  void winners(std::span<std::int32_t> winners) const override { masses_.winners(winners); }

 private:
  [[nodiscard]] std::vector<double> values_of(std::span<const std::int64_t> rows) const {
    std::vector<double> values(rows.size() * static_cast<std::size_t>(d_));
    lloyd_.rows(rows, values);
    return values;
  }

  kernels::Lloyd& lloyd_;
  std::int64_t n_;
  std::int64_t d_;
  RowMasses masses_;
};

void CpuSeeding::draw(std::span<const double> draws, std::span<std::int64_t> rows) {
  for (std::size_t t = 0; t < draws.size(); ++t) {
    rows[t] = core::drawn_row(draws[t], n_, masses_.tree(), masses_.sums(RowMasses::kAsTheyAre).data(),
                              [&](std::int64_t i) { return masses_.mass(RowMasses::kAsTheyAre, i); });
  }
}

void CpuSeeding::choose(std::span<const double> draws, std::span<std::int64_t> rows) {
  const std::size_t trials = draws.size() / rows.size();
  std::vector<std::int64_t> drawn(trials);
  for (std::size_t c = 0; c < rows.size(); ++c) {
    draw(draws.subspan(c * trials, trials), drawn);
    masses_.attempt(values_of(drawn));
    std::size_t best = 0;
    const auto left_by = [&](std::size_t t) { return masses_.sums(static_cast<std::int64_t>(t)).back(); };
    for (std::size_t t = 1; t < trials; ++t) best = left_by(t) < left_by(best) ? t : best;
    rows[c] = drawn[best];
    masses_.take(static_cast<std::int64_t>(best));
  }
}

}  // namespace

std::unique_ptr<kernels::Seeding> make_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                               kernels::Lloyd& lloyd, std::int64_t trials) {
  return std::make_unique<CpuSeeding>(ctx, task, lloyd, trials);
}

std::unique_ptr<kernels::ShardSeeding> make_shard_seeding(const Context& ctx, const kernels::ClusterTask& task,
                                                          kernels::Lloyd& lloyd, std::int64_t trials,
                                                          std::int64_t first) {
  return std::make_unique<RowMasses>(ctx, task, lloyd, trials, first);
}

std::uint64_t seeding_scratch(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) {
  const auto n = static_cast<std::uint64_t>(task.table.rows());
  const auto d = static_cast<std::uint64_t>(task.table.cols());
  const auto nodes = static_cast<std::uint64_t>(core::MassTree(task.table.rows()).nodes);
  const std::uint64_t widened = row_element(task.table) == Element::float32 ? 0 : kSeedingChunk * d * sizeof(double);
  const auto draws = static_cast<std::uint64_t>(trials);
  std::uint64_t bytes = n * (8 + 4) + nodes * 8 + part_bytes(task.table);
  if (trials == 0) return bytes + n * (8 + 4);
  // 2 + floor(ln k) draws are for fewer than e^(draws - 1) centers; room for centers grows twofold.
  const auto centres = static_cast<std::uint64_t>(
      std::min(static_cast<double>(task.table.rows()), std::exp(static_cast<double>(trials - 1)) + 1));
  bytes += nodes * 16 + draws * (n * 8 + nodes * 12) + 2 * centres * (d + 7) * 8 + centres * (draws + 3) * 8;
  return bytes +
         static_cast<std::uint64_t>(ctx.threads()) * (widened + kSeedingChunk * (24 + 4 * draws) + d * 8 + 8192);
}

std::uint64_t seeding_screen_bytes(const Context& ctx, const kernels::ClusterTask& task, std::int64_t trials) {
  if (trials <= 0 || (task.clusters - 1) * trials <= kPackingKeys) return 0;
  if (!SeedingScreen::serves(simd_kernels(ctx.isa()), task.table)) return 0;
  return SeedingScreen::bytes(task.table.rows() + kSeedingChunk, task.table.cols(), trials);
}

}  // namespace vicinal::cpu

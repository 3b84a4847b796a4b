// See divided_kmeans.hpp.
#include "plugin/cuda/divided_kmeans.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cluster_parts.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "formulas/kmeans/limbs.hpp"
#include "plugin/cuda/divided_nearest.hpp"

namespace vicinal::plugin {
namespace {

using kernels::ClusterTask;

constexpr std::int64_t kAddedAtOnce = 16384;  // integers of a task of the host's threads

/// The rows [begin, end) of a task.
ClusterTask rows_of(const ClusterTask& task, std::int64_t begin, std::int64_t end) {
  ClusterTask own = task;
  own.table = task.table.slice(begin, end);
  own.first_row = task.first_row + begin;
  if (!task.weights.empty()) {
    own.weights = task.weights.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
  return own;
}

/// Memory of the host's: where devices show their sums, of so many limbs, and sizes; and sizes fetched alone.
std::uint64_t shown_bytes(const ClusterTask& task, std::int64_t devices, std::int64_t limbs) {
  const std::int64_t columns = task.table.cols() + (task.weights.empty() ? 0 : 1);
  const std::int64_t sums = task.sums ? limbs * columns + 1 : 0;
  return static_cast<std::uint64_t>(devices * task.clusters * (sums + 1)) * sizeof(std::int64_t);
}
std::int64_t planned_limbs(const ClusterTask& task) {
  return kernels::planned_limbs(task.table.dtype(), !task.weights.empty());
}

/// A seeding, and the whole table that it draws from.
class OwningSeeding final : public kernels::Seeding {
 public:
  OwningSeeding(std::unique_ptr<kernels::Lloyd> whole, std::int64_t trials)
      : whole_(std::move(whole)), seeding_(whole_->seeding(trials)) {}

  void draw(std::span<const double> draws, std::span<std::int64_t> rows) override { seeding_->draw(draws, rows); }
  void choose(std::span<const double> draws, std::span<std::int64_t> rows) override { seeding_->choose(draws, rows); }
  void meet(std::span<const std::int64_t> rows) override { seeding_->meet(rows); }
  double total() const override { return seeding_->total(); }
  void winners(std::span<std::int32_t> winners) const override { seeding_->winners(winners); }

 private:
  std::unique_ptr<kernels::Lloyd> whole_;
  std::unique_ptr<kernels::Seeding> seeding_;  // goes first
};

class DividedLloyd final : public kernels::Lloyd {
 public:
  DividedLloyd(std::shared_ptr<Crew> crew, const Context& ctx, const ClusterTask& task)
      : crew_(std::move(crew)),
        ctx_(ctx),
        task_(task),
        cuts_(equal_cuts(task.table.rows(), crew_->size(), 1)),
        members_(cuts_.size() - 1) {
    run("take", [&](std::int64_t i) {
      of(i) = make_lloyd(crew_->device(i), crew_->context(i), rows_of(task_, begin(i), begin(i + 1)), true);
    });
    if (task_.sums) share();
  }

  void start(std::span<const double> centres) override {
    k_ = static_cast<std::int64_t>(centres.size()) / task_.table.cols();
    run("start", [&](std::int64_t i) { of(i)->start(centres); });
  }
  void recentre(std::span<const double> centres) override {
    run("start", [&](std::int64_t i) { of(i)->recentre(centres); });
  }
  kernels::LloydStep assign() override {
    is_merged_ = false;
    std::vector<std::int64_t> changed(members_.size());
    const bool summed = task_.sums;
    std::vector<std::vector<std::int64_t>> sizes(members_.size());
    run("assign", [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      changed[at] = of(i)->assign().changed;
      if (summed) {
        parts_[at] = of(i)->parts();
      } else {
        sizes[at].resize(static_cast<std::size_t>(k_));
        of(i)->sizes(sizes[at]);
      }
    });
    if (summed) merge_parts();
    kernels::LloydStep step;
    for (const std::int64_t rows : changed) step.changed += rows;
    for (std::int64_t c = 0; c < k_; ++c) {
      std::int64_t rows = 0;
      if (summed) {
        rows = parts_.front()[sum_count() + c];
      } else {
        for (const auto& own : sizes) rows += own[static_cast<std::size_t>(c)];
      }
      step.empty += rows == 0 ? 1 : 0;
    }
    is_merged_ = summed;
    return step;
  }
  double means() override {
    if (!is_merged_) {
      run("means", [&](std::int64_t i) { parts_[static_cast<std::size_t>(i)] = of(i)->parts(); });
      merge_parts();
    }
    is_merged_ = false;
    std::vector<double> shifts(members_.size());
    run("means", [&](std::int64_t i) { shifts[static_cast<std::size_t>(i)] = of(i)->means_of(parts_.front()); });
    return shifts.front();
  }
  void move(std::int64_t row, std::int32_t cluster) override {
    is_merged_ = false;
    const std::int64_t i = member_of(row);
    crew_->run_here(ctx_, i, [&] { of(i)->move(row - begin(i), cluster); });
  }
  void centres(std::span<double> centres) const override {
    crew_->run("fetch", ctx_, 1, [&](std::int64_t i) { of(i)->centres(centres); });
  }
  void sizes(std::span<std::int64_t> sizes) const override {
    std::vector<std::vector<std::int64_t>> found(members_.size(), std::vector<std::int64_t>(sizes.size()));
    run("fetch", [&](std::int64_t i) { of(i)->sizes(found[static_cast<std::size_t>(i)]); });
    std::fill(sizes.begin(), sizes.end(), 0);
    for (const auto& own : found) {
      for (std::size_t c = 0; c < own.size(); ++c) sizes[c] += own[c];
    }
  }
  void labels(std::span<std::int32_t> labels) const override {
    run("fetch", [&](std::int64_t i) { of(i)->labels(mine(labels, i)); });
  }
  void keys(std::span<double> keys) override {
    run("fetch", [&](std::int64_t i) { of(i)->keys(mine(keys, i)); });
  }
  double inertia() override {
    using Limbs = std::array<std::int64_t, kInertiaLimbs>;
    std::vector<Limbs> limbs(members_.size(), Limbs{});
    run("inertia", [&](std::int64_t i) { of(i)->inertia_limbs(limbs[static_cast<std::size_t>(i)]); });
    Limbs& all = limbs.front();
    for (std::size_t m = 0; m < limbs.size(); ++m) {
      std::int64_t* const own = limbs[m].data();
      // So that the top one has room for those of all.
      own[kInertiaLimbs - 1] += core::settle_limbs(own, 1, kInertiaLimbs - 1, 32);
      for (std::size_t l = 0; m > 0 && l < all.size(); ++l) all[l] += own[l];
    }
    const std::int64_t carry = core::settle_limbs(all.data(), 1, kInertiaLimbs, 32);
    return core::rounded_limbs(all.data(), 1, kInertiaLimbs, 32, carry, -1074);
  }
  void rows(std::span<const std::int64_t> rows, std::span<double> values) const override {
    const auto d = static_cast<std::size_t>(task_.table.cols());
    struct Chosen {
      std::vector<std::int64_t> numbers;
      std::vector<std::size_t> places;
      std::vector<double> values;
    };
    std::vector<Chosen> chosen(members_.size());
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const std::int64_t i = member_of(rows[at]);
      chosen[static_cast<std::size_t>(i)].numbers.push_back(rows[at] - begin(i));
      chosen[static_cast<std::size_t>(i)].places.push_back(at);
    }
    run("fetch", [&](std::int64_t i) {
      Chosen& own = chosen[static_cast<std::size_t>(i)];
      if (own.numbers.empty()) return;
      own.values.resize(own.numbers.size() * d);
      of(i)->rows(own.numbers, own.values);
      for (std::size_t at = 0; at < own.places.size(); ++at) {
        std::copy_n(own.values.begin() + static_cast<std::ptrdiff_t>(at * d), d,
                    values.begin() + static_cast<std::ptrdiff_t>(own.places[at] * d));
      }
    });
  }
  std::unique_ptr<kernels::Seeding> seeding(std::int64_t trials) override {
    const ClusterTask whole = {task_.table, task_.weights, task_.clusters, false, task_.first_row};
    try {
      return std::make_unique<OwningSeeding>(make_lloyd(crew_->device(0), ctx_, whole), trials);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::over_memory) throw;
    }
    return std::make_unique<OwningSeeding>(kernels::cpu_backend().kmeans().lloyd(ctx_, whole), trials);
  }
  kernels::AssignCounts counts() const override {
    kernels::AssignCounts all;
    for (const auto& member : members_) {
      const kernels::AssignCounts own = member->counts();
      all.rows += own.rows;
      all.skipped += own.skipped;
      all.rechecked += own.rechecked;
    }
    return all;
  }

  std::uint64_t more_bytes() const override { return more_bytes_; }

 private:
  [[nodiscard]] std::int64_t begin(std::int64_t member) const { return cuts_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] std::unique_ptr<CudaLloyd>& of(std::int64_t member) {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] const std::unique_ptr<CudaLloyd>& of(std::int64_t member) const {
    return members_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] std::int64_t member_of(std::int64_t row) const {
    return std::upper_bound(cuts_.begin(), cuts_.end(), row) - cuts_.begin() - 1;
  }
  template <class T>
  [[nodiscard]] std::span<T> mine(std::span<T> of_all, std::int64_t member) const {
    return of_all.subspan(static_cast<std::size_t>(begin(member)),
                          static_cast<std::size_t>(begin(member + 1) - begin(member)));
  }
  template <class Work>
  void run(const char* name, const Work& work) const {
    crew_->run(name, ctx_, std::ssize(members_), work);
  }
  /// Of all clusters' sums.
  [[nodiscard]] std::int64_t sum_count() const { return k_ * limbs_ * std::ssize(bases_); }

  /// How sums are kept, by what all rows are like.
  void share() {
    std::vector<std::vector<TermRange>> ranges(members_.size());
    run("share", [&](std::int64_t i) { ranges[static_cast<std::size_t>(i)] = of(i)->ranges(); });
    std::vector<TermRange> all(ranges.front().size());
    for (const std::vector<TermRange>& own : ranges) {
      for (std::size_t j = 0; j < own.size(); ++j) {
        all[j].largest = std::max(all[j].largest, own[j].largest);
        all[j].largest_term = std::max(all[j].largest_term, own[j].largest_term);
        all[j].last = std::min(all[j].last, own[j].last);
      }
    }
    if (!task_.weights.empty()) {
      double largest = 0;
      for (std::size_t j = 0; j + 1 < all.size(); ++j) largest = std::max(largest, all[j].largest);
      kernels::require_no_overflow(largest, all.back().largest_term, task_.table.rows(), task_.table.cols());
    }
    const int bits = core::limb_bits_for(task_.table.rows());
    for (const TermRange& column : all) {
      bases_.push_back(column.largest_term > 0 ? column.last - 1074 : 0);
      limbs_ = std::max(limbs_, core::limbs_for(column.largest_term, bases_.back(), bits));
    }
    const std::int64_t devices = std::ssize(members_);
    const std::int64_t planned = planned_limbs(task_);
    if (limbs_ > planned) more_bytes_ = shown_bytes(task_, devices, limbs_) - shown_bytes(task_, devices, planned);
    core::require_memory(ctx_, task_.planned + more_bytes_, "kmeans: sums of values so far apart");
    const SumLayout layout = {limbs_, bits, bases_.data()};
    parts_.resize(members_.size());
    run("share", [&](std::int64_t i) { of(i)->share(layout); });
  }
  /// Adds the sums and sizes of all shards to those of the first. Limbs have bits to spare for the terms of all rows.
  void merge_parts() {
    const std::int64_t count = sum_count() + k_;
    core::parallel_for(ctx_, (count + kAddedAtOnce - 1) / kAddedAtOnce, [&](std::int64_t task, int /*worker*/) {
      const std::int64_t end = std::min(count, (task + 1) * kAddedAtOnce);
      for (std::size_t m = 1; m < parts_.size(); ++m) {
        for (std::int64_t i = task * kAddedAtOnce; i < end; ++i) parts_.front()[i] += parts_[m][i];
      }
    });
  }

  std::shared_ptr<Crew> crew_;
  Context ctx_;
  ClusterTask task_;
  std::vector<std::int64_t> cuts_;
  std::vector<std::unique_ptr<CudaLloyd>> members_;
  std::int64_t k_ = 0;
  std::int32_t limbs_ = 1;
  std::vector<std::int32_t> bases_;
  std::vector<std::int64_t*> parts_;  // pinned memory of the devices' clusterings
  bool is_merged_ = false;            // parts_.front() is of all rows
  std::uint64_t more_bytes_ = 0;
};

}  // namespace

DividedKMeans::DividedKMeans(std::shared_ptr<Crew> crew) : crew_(std::move(crew)) {
  for (std::int64_t i = 0; i < crew_->size(); ++i) members_.emplace_back(crew_->device(i));
}

std::string DividedKMeans::screens(const ClusterTask& task) const {
  return members_.front().screens(task);
}

std::unique_ptr<kernels::Lloyd> DividedKMeans::lloyd(const Context& ctx, const ClusterTask& task) const {
  return std::make_unique<DividedLloyd>(crew_, ctx, task);
}

kernels::ClusterPlan DividedKMeans::plan(const Context& ctx, const ClusterTask& task, std::int64_t trials) const {
  const std::vector<std::int64_t> cuts = equal_cuts(task.table.rows(), crew_->size(), 1);
  kernels::ClusterPlan all;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const kernels::ClusterPlan own =
        members_[i].plan_of(ctx, rows_of(task, cuts[i], cuts[i + 1]), kernels::kNoSeeding, true);
    all.bytes.host += own.bytes.host;
    all.bytes.device = std::max(all.bytes.device, own.bytes.device);
    all.part = std::max(all.part, own.part);
  }
  all.bytes.host += shown_bytes(task, std::ssize(cuts) - 1, planned_limbs(task));
  if (trials == kernels::kNoSeeding) return all;
  // The first device holds its rows beside the whole table; what it has no room for, the host draws.
  const ClusterTask drawn = {task.table, task.weights, task.clusters, false};
  std::uint64_t seeding = kernels::cpu_backend().kmeans().plan(ctx, drawn, trials).bytes.host;
  try {
    const kernels::ClusterPlan whole = members_.front().plan(ctx, drawn, trials);
    all.bytes.device += whole.bytes.device;
    all.seeds_on_host = whole.seeds_on_host;
    seeding = std::max(seeding, whole.bytes.host);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::over_memory) throw;
    all.seeds_on_host = true;
  }
  all.bytes.host += seeding;
  return all;
}

}  // namespace vicinal::plugin

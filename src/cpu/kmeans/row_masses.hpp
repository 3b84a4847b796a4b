// The masses of a table's rows, or of a shard's, while first centers are drawn (contract clause 12): keys by the
// kernels of the search, sums in a tree. A step of k-means++ reads the rows once for all its draws, but only those that
// it may change: those whose own center is near enough to a drawn row (`list_open`). Once computing keys has
// taken as long as packing the rows does, the int8 screen (cpu/kmeans/seeding_screen.hpp) says which of these rows a
// draw may change (`list_screened`). Cost O(n d) a draw at most; memory 8 n (draws + 1), the packed rows and the
// centers. For k-means|| rows are assigned to centers by the iterations' own screen.
//
// Sums are those of groups of 32 rows, of 32 groups and so on, counted from a multiple of 32,768. So a shard that
// begins elsewhere is treated as a table that begins with rows without mass (`before_` of them), and numbers of rows
// here are those of that table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kmeans.hpp"
#include "core/aligned.hpp"
#include "cpu/kmeans/backoff.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "cpu/kmeans/seeding_screen.hpp"
#include "formulas/kmeans/masses.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

class RowMasses final : public kernels::ShardSeeding {
 public:
  /// `first`: the number of the first row among those of all shards. `lloyd` assigns rows to the centers of k-means||.
  RowMasses(const Context& ctx, const kernels::ClusterTask& task, kernels::Lloyd& lloyd, std::int64_t trials,
            std::int64_t first);

  void attempt(std::span<const double> rows) override;
  void take(std::int64_t attempt) override;
  void meet(std::span<const double> rows) override;
  std::span<const double> sums(std::int64_t attempt) const override {
    return attempt == kAsTheyAre ? sums_ : attempts_[static_cast<std::size_t>(attempt)].sums;
  }
  double mass(std::int64_t attempt, std::int64_t row) const override;
  void winners(std::span<std::int32_t> winners) const override {
    std::copy(winners_.begin() + before_, winners_.end(), winners.begin());
  }
  [[nodiscard]] const core::MassTree& tree() const noexcept { return tree_; }

 private:
  /// What a drawn row would leave as a center. A least key is in `keys` where its row's bit in `changed` says so, else
  /// it is the one of before.
  struct Attempt {
    core::AlignedArray<double> keys;     // [rows]
    std::vector<std::uint32_t> changed;  // [rows / 32]
    std::vector<double> sums;            // [nodes]
    std::vector<double> centre;          // [padded]
  };
  /// 32 rows that have a sum.
  struct Group {
    std::int32_t centre;  // to which all their least keys are; or there are several, or none yet
    double greatest;      // of these keys
  };
  struct Worker {
    RowReader reader;
    std::vector<std::int32_t> open;    // [draws, kSeedingChunk] rows that a draw may change, counted from the first
    std::vector<std::int64_t> counts;  // [draws] of them
    std::vector<const void*> rows;     // where those of one draw lie
    std::vector<double> keys;
    SeedingScreen::Scratch scratch;
    // Pairs of a row and a draw in one step:
    std::int64_t screened = 0;
    std::int64_t computed = 0;  // by their keys
  };

  void find_between(std::int64_t trials);
  [[nodiscard]] bool is_open(std::int64_t group, const double* between) const;
  void note_group(std::int64_t group);
  void list_open(Worker& worker, std::int64_t draw, std::int64_t first, std::int64_t end) const;
  void list_screened(Worker& worker, std::int64_t trials, std::int64_t first, std::int64_t end) const;
  void attempt_rows(Worker& worker, std::int64_t draw, std::int64_t first, std::int64_t end);
  [[nodiscard]] double changed_mass(const Attempt& attempt, std::int64_t group) const;
  void choose_screen();
  void pack_rows(SeedingScreen& screen) const;
  // Calls visit(row) for every row, then adds up the masses.
  template <class Visit>
  void add_masses(const Visit& visit);
  // The sum of the masses of 32 rows; key(row) is the least key of one.
  template <class Key>
  [[nodiscard]] double group_mass(std::int64_t group, const Key& key) const {
    const std::int64_t first = group * core::kMassParts;
    return core::sum_of_parts(rows_ - first, [&](std::int64_t i) { return mass_of(first + i, key(first + i)); });
  }
  // A row before the shard has a key of 0.
  [[nodiscard]] double mass_of(std::int64_t row, double key) const {
    return task_.weights.empty() || row < before_ ? key : task_.weights[static_cast<std::size_t>(row - before_)] * key;
  }
  [[nodiscard]] double key_of(std::int64_t row) const { return keys_[row]; }
  [[nodiscard]] std::size_t padded() const { return static_cast<std::size_t>((d_ + 7) / 8 * 8); }

  Context ctx_;
  kernels::ClusterTask task_;
  kernels::Lloyd& lloyd_;
  std::int64_t before_;  // rows of others, from the last multiple of kAligned
  std::int64_t rows_;    // those and the shard's
  std::int64_t d_;
  KeysFn keys_of_;
  KeysFn wide_keys_of_;
  core::MassTree tree_;
  std::int64_t centres_ = 0;           // taken so far; until there is one every key counts as 1
  core::AlignedArray<double> keys_;    // [rows] least ones
  std::vector<double> sums_;           // [nodes] of their masses
  std::vector<std::int32_t> winners_;  // [rows] the centers that they are to
  // k-means++
  std::vector<Attempt> attempts_;
  std::vector<Group> groups_;    // [rows / 32]
  std::vector<double> values_;   // [centers, padded]
  std::vector<double> between_;  // [draws, centers] keys
  std::vector<double> nearest_;  // [centers] the least of these of all draws
  bool may_screen_;              // there is room for it
  std::int64_t unscreened_ = 0;  // pairs whose keys were computed without a screen
  std::int64_t screen_first_;    // the row that is row 0 of the screen
  std::unique_ptr<SeedingScreen> screen_;
  bool screens_ = false;  // the step
  Backoff backoff_;       // of steps
  std::vector<Worker> workers_;
  // k-means||
  std::vector<double> batch_keys_;
  std::vector<std::int32_t> batch_labels_;
};

}  // namespace vicinal::cpu

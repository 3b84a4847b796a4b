// The tree of masses (contract clause 12, draws) over the rows of all ranks. Each rank knows the sums of its own rows.
// What is exchanged are the sums that no rank can make alone: those with rows on both sides of a cut. For them each
// rank sends, level by level, the up to 31 parts before and after its cuts, and its sums of 32,768 rows, from which
// every rank makes the rest of the tree.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/kmeans.hpp"
#include "formulas/kmeans/masses.hpp"
#include "vicinal/communicator.hpp"

namespace vicinal::ops {

/// Which parts of the tree a rank knows. Level -1 are the masses of rows, level 0 their sums by 32, and so on.
class MassLayout {
 public:
  /// `begins` [ranks + 1]: the first row of each rank, and the number of rows.
  explicit MassLayout(std::vector<std::int64_t> begins);

  [[nodiscard]] const core::MassTree& tree() const noexcept { return tree_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return begins_.back(); }
  [[nodiscard]] const std::vector<std::int64_t>& begins() const noexcept { return begins_; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(begins_.size()) - 1; }
  /// The highest level of which parts are sent.
  [[nodiscard]] int top() const noexcept { return top_; }
  /// Parts of a level.
  [[nodiscard]] std::int64_t size(int level) const { return level < 0 ? rows() : tree_.sizes[level]; }

  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  /// The parts of a level that are sums of a rank's rows alone.
  [[nodiscard]] Range own(int rank, int level) const;
  /// The rank whose own a part is, or -1.
  [[nodiscard]] int owner(int level, std::int64_t part) const;
  /// Calls visit(level, part) for what a rank sends, in the order in which it does.
  template <class Visit>
  void for_each_sent(int rank, const Visit& visit) const {
    for (int level = -1; level <= top_; ++level) {
      const Range mine = own(rank, level);
      const Range inner = level < top_ ? own(rank, level + 1) : Range{0, 0};
      const std::int64_t left = std::min(mine.end, std::max(mine.begin, inner.begin * core::kMassParts));
      const std::int64_t right = std::min(mine.end, inner.end * core::kMassParts);
      const bool has_inner = inner.end > inner.begin;
      for (std::int64_t part = mine.begin; part < (has_inner ? left : mine.end); ++part) visit(level, part);
      for (std::int64_t part = right; has_inner && part < mine.end; ++part) visit(level, part);
    }
  }
  [[nodiscard]] std::int64_t sent(int rank) const;

 private:
  std::vector<std::int64_t> begins_;
  core::MassTree tree_;
  int top_;
};

/// A rank's own masses and sums, by the numbers of all rows; of the masses as they are, or as an attempt leaves them.
class OwnMasses {
 public:
  OwnMasses(const kernels::ShardSeeding& seeding, std::int64_t attempt, std::int64_t first, std::int64_t rows);
  [[nodiscard]] double operator()(int level, std::int64_t part) const;

 private:
  const kernels::ShardSeeding& seeding_;
  std::int64_t attempt_;
  std::int64_t begin_;  // the multiple of 32,768 from which the rank counts
  core::MassTree tree_;
};

/// What every rank knows of the tree.
class SharedMasses {
 public:
  /// From what the ranks sent, one after the other.
  SharedMasses(const MassLayout& layout, std::span<const double> sent);

  [[nodiscard]] double total() const { return sums_.back(); }
  /// The row that a draw u in [0, 1) stands for, if the rank's own masses are needed to say so, or if every rank can
  /// say it and this is rank 0; else 0. So the sum over the ranks is the row. `own` is null for a rank without rows.
  [[nodiscard]] std::int64_t drawn_row(const MassLayout& layout, double u, int rank, const OwnMasses* own) const;

 private:
  [[nodiscard]] double known(const MassLayout& layout, int level, std::int64_t part) const;

  std::vector<std::unordered_map<std::int64_t, double>> parts_;  // of levels -1 to top - 1
  std::vector<double> sums_;                                     // of levels from top
  std::vector<std::int64_t> begins_;                             // where they begin
};

/// Exchanges what `attempts` masses of this rank (kAsTheyAre or the first ones) add; `seeding` is null for a rank
/// without rows. A collective of all ranks.
std::vector<SharedMasses> share_masses(Communicator& ranks, const MassLayout& layout,
                                       const kernels::ShardSeeding* seeding, std::span<const std::int64_t> attempts);

}  // namespace vicinal::ops

// See shared_masses.hpp. That a rank sends enough: a sum with rows of several ranks is made of parts one level below,
// each of which is either such a sum itself, and made before, or some rank's own, whose sum above is not its own; and
// these are the ones that are sent.
#include "ops/kmeans/shared_masses.hpp"

#include <algorithm>

namespace vicinal::ops {
namespace {

constexpr int kTopLevel = 2;  // sums of 32^3 = 32,768 rows

// Rows under a part of a level.
std::int64_t rows_of_part(int level) {
  return std::int64_t{1} << 5 * (level + 1);
}

static_assert(kernels::ShardSeeding::kAligned == std::int64_t{1} << 5 * (kTopLevel + 1));

}  // namespace

MassLayout::MassLayout(std::vector<std::int64_t> begins)
    : begins_(std::move(begins)), tree_(begins_.back()), top_(std::min(kTopLevel, tree_.levels - 1)) {}

MassLayout::Range MassLayout::own(int rank, int level) const {
  const std::int64_t first = begins_[static_cast<std::size_t>(rank)];
  const std::int64_t end = begins_[static_cast<std::size_t>(rank) + 1];
  const std::int64_t size = rows_of_part(level);
  const std::int64_t from = (first + size - 1) / size;
  const std::int64_t to = end == rows() ? (end + size - 1) / size : end / size;
  return {from, std::max(from, to)};
}

int MassLayout::owner(int level, std::int64_t part) const {
  const std::int64_t row = part * rows_of_part(level);
  const auto next = std::upper_bound(begins_.begin(), begins_.end() - 1, row);
  const auto rank = static_cast<int>(next - begins_.begin()) - 1;
  const Range mine = own(rank, level);
  return part >= mine.begin && part < mine.end ? rank : -1;
}

std::int64_t MassLayout::sent(int rank) const {
  std::int64_t count = 0;
  for_each_sent(rank, [&](int /*level*/, std::int64_t /*part*/) { ++count; });
  return count;
}

OwnMasses::OwnMasses(const kernels::ShardSeeding& seeding, std::int64_t attempt, std::int64_t first, std::int64_t rows)
    : seeding_(seeding),
      attempt_(attempt),
      begin_(first / kernels::ShardSeeding::kAligned * kernels::ShardSeeding::kAligned),
      tree_(first + rows - begin_) {}

double OwnMasses::operator()(int level, std::int64_t part) const {
  if (level < 0) return seeding_.mass(attempt_, part - begin_);
  const std::span<const double> sums = seeding_.sums(attempt_);
  // The last rows of all may be few: a sum of one part is that part.
  if (level >= tree_.levels) return sums.back();
  return sums[static_cast<std::size_t>(tree_.begins[level] + part - begin_ / rows_of_part(level))];
}

SharedMasses::SharedMasses(const MassLayout& layout, std::span<const double> sent)
    : parts_(static_cast<std::size_t>(layout.top() + 1)) {
  const core::MassTree& tree = layout.tree();
  const int top = layout.top();
  std::int64_t size = 0;
  for (int level = top; level < tree.levels; ++level) {
    begins_.push_back(size);
    size += tree.sizes[level];
  }
  sums_.resize(static_cast<std::size_t>(size));
  const auto keep = [&](int level, std::int64_t part, double sum) {
    if (level < top) {
      parts_[static_cast<std::size_t>(level + 1)][part] = sum;
    } else {
      sums_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(level - top)] + part)] = sum;
    }
  };
  const auto sum_of = [&](int level, std::int64_t part) {
    const std::int64_t first = part * core::kMassParts;
    return core::sum_of_parts(layout.size(level - 1) - first,
                              [&](std::int64_t i) { return known(layout, level - 1, first + i); });
  };
  const double* next = sent.data();
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    layout.for_each_sent(rank, [&](int level, std::int64_t part) { keep(level, part, *next++); });
  }
  for (int level = 0; level <= top; ++level) {
    for (const std::int64_t cut : layout.begins()) {
      const std::int64_t part = cut / rows_of_part(level);
      if (part < layout.size(level) && layout.owner(level, part) < 0) keep(level, part, sum_of(level, part));
    }
  }
  for (int level = top + 1; level < tree.levels; ++level) {
    for (std::int64_t part = 0; part < tree.sizes[level]; ++part) keep(level, part, sum_of(level, part));
  }
}

double SharedMasses::known(const MassLayout& layout, int level, std::int64_t part) const {
  if (level < layout.top()) return parts_[static_cast<std::size_t>(level + 1)].at(part);
  return sums_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(level - layout.top())] + part)];
}

std::int64_t SharedMasses::drawn_row(const MassLayout& layout, double u, int rank, const OwnMasses* own) const {
  const std::int64_t n = layout.rows();
  if (total() == 0) return rank == 0 ? core::massless_row(u, n) : 0;
  double t = u * total();
  std::int64_t part = 0;
  bool is_own = false;
  for (int level = layout.tree().levels - 1; level >= 0; --level) {
    if (!is_own && level <= layout.top()) {
      const int owner = layout.owner(level, part);
      if (owner >= 0 && owner != rank) return 0;
      is_own = owner == rank;
    }
    const std::int64_t first = part * core::kMassParts;
    const std::int64_t count = std::min(core::kMassParts, layout.size(level - 1) - first);
    part = first + core::part_under(
                       count,
                       [&](std::int64_t i) {
                         return is_own ? (*own)(level - 1, first + i) : known(layout, level - 1, first + i);
                       },
                       t);
  }
  return is_own || rank == 0 ? part : 0;
}

std::vector<SharedMasses> share_masses(Communicator& ranks, const MassLayout& layout,
                                       const kernels::ShardSeeding* seeding, std::span<const std::int64_t> attempts) {
  const int rank = ranks.rank();
  const std::int64_t first = layout.begins()[static_cast<std::size_t>(rank)];
  const std::int64_t rows = layout.begins()[static_cast<std::size_t>(rank) + 1] - first;
  // By attempts, and of each what the ranks send one after the other: so each rank's part is gathered attempt by
  // attempt.
  std::vector<std::int64_t> bytes;
  std::int64_t all = 0;
  for (int r = 0; r < ranks.size(); ++r) {
    bytes.push_back(layout.sent(r) * static_cast<std::int64_t>(sizeof(double)));
    all += layout.sent(r);
  }
  std::vector<SharedMasses> made;
  std::vector<double> sent;
  std::vector<double> gathered(static_cast<std::size_t>(all));
  for (const std::int64_t attempt : attempts) {
    sent.clear();
    if (rows > 0) {
      const OwnMasses own(*seeding, attempt, first, rows);
      layout.for_each_sent(rank, [&](int level, std::int64_t part) { sent.push_back(own(level, part)); });
    }
    ranks.all_gather(std::as_bytes(std::span(sent)), bytes, std::as_writable_bytes(std::span(gathered)));
    made.emplace_back(layout, gathered);
  }
  return made;
}

}  // namespace vicinal::ops

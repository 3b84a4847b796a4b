// See divided_nearest.hpp.
#include "plugin/cuda/divided_nearest.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "core/infinity.hpp"
#include "core/list_room.hpp"
#include "core/parallel.hpp"
#include "plugin/cuda/staging.hpp"

namespace vicinal::plugin {
namespace {

using kernels::NearestTask;

constexpr std::int64_t kFilterWord = 64;  // rows: a filter is cut between two words
constexpr std::int64_t kMergedAtOnce = 1024;
constexpr std::uint64_t kRoundBytes = std::uint64_t{1} << 29;  // of all devices' lists
constexpr std::uint64_t kFewLists = 4;  // times their bytes: where this is less than the table, it is divided by rows

/// The trees of one table, one for each device.
class Trees final : public kernels::Tree {
 public:
  explicit Trees(std::vector<std::shared_ptr<const kernels::Tree>> trees) : trees_(std::move(trees)) {}

  [[nodiscard]] const kernels::Tree* of(std::int64_t member) const {
    return trees_[static_cast<std::size_t>(member)].get();
  }
  [[nodiscard]] std::shared_ptr<const kernels::TreeShape> shape_of(const Context& ctx,
                                                                   const kernels::Prepared& index) const override {
    return trees_.front()->shape_of(ctx, index);
  }

 private:
  std::vector<std::shared_ptr<const kernels::Tree>> trees_;
};

/// Largest deviation from `centre` that rows can have which deviate from another one by at most `largest`.
double largest_from(const std::vector<double>& centre, const kernels::Prepared& shard) {
  double apart = 0;
  for (std::size_t j = 0; j < centre.size(); ++j) apart = std::max(apart, std::fabs(shard.centre[j] - centre[j]));
  if (apart == 0) return shard.largest;
  return std::min((shard.largest + apart) * (1 + 0x1p-50), DBL_MAX);
}

}  // namespace

void add_stats(const SearchStats& from, SearchStats& to) {
  to.survivors += from.survivors;
  to.escalated += from.escalated;
  to.uncertified += from.uncertified;
  to.selection_seconds = std::max(to.selection_seconds, from.selection_seconds);
}

/// The ranges of an index's rows, each prepared on its device.
struct DividedNearest::Shards {
  std::vector<std::int64_t> cuts;
  std::vector<std::unique_ptr<kernels::Prepared>> of;

  Shards(const kernels::Prepared& index, std::vector<std::int64_t> begins) : cuts(std::move(begins)) {
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      of.push_back(std::make_unique<kernels::Prepared>());
      of.back()->table = index.table.slice(cuts[i], cuts[i + 1]);
      of.back()->first_id = index.first_id + cuts[i];
      of.back()->centre = index.centre;
      of.back()->largest = index.largest;
    }
  }
};

/// What a device found among its rows: k of each query, or all that there are, as `offsets` say.
struct DividedNearest::RowLists {
  std::int64_t first = 0;  ///< of the device's rows
  std::unique_ptr<std::int64_t[]> k_ids;
  std::unique_ptr<double[]> k_keys;
  std::vector<std::int64_t> ids;
  std::vector<double> keys;
  std::vector<std::int64_t> offsets;
  SearchStats stats;

  void find(const Context& ctx, const CudaNearest& nearest, const SearchPart& part) {
    first = part.begin;
    if (part.lists_all) {
      std::vector<std::int64_t> unused;
      kernels::NearestResult result{ids, keys, offsets, unused, stats};
      return nearest.search(ctx, part.task, result);
    }
    const auto size = static_cast<std::size_t>(part.task.queries.rows() * part.task.k);
    k_ids.reset(new std::int64_t[size]);  // not cleared: the search fills them
    k_keys.reset(new double[size]);
    core::touch_pages(ctx, k_ids.get(), size * sizeof(std::int64_t));
    core::touch_pages(ctx, k_keys.get(), size * sizeof(double));
    nearest.search_into(ctx, part.task, {k_ids.get(), k_keys.get(), Memory::host}, stats);
  }

  /// What of a query's list has not been taken yet.
  struct Head {
    const std::int64_t* ids;
    const double* keys;
    std::int64_t left;
    std::int64_t first;
  };
  [[nodiscard]] Head head_of(std::int64_t query, std::int64_t k) const {
    if (offsets.empty()) return {k_ids.get() + query * k, k_keys.get() + query * k, k, first};
    const std::int64_t begin = offsets[static_cast<std::size_t>(query)];
    return {ids.data() + begin, keys.data() + begin, offsets[static_cast<std::size_t>(query) + 1] - begin, first};
  }
};

DividedNearest::DividedNearest(std::shared_ptr<Crew> crew) : crew_(std::move(crew)) {
  for (std::int64_t i = 0; i < crew_->size(); ++i) members_.push_back(make_nearest(crew_->device(i)));
}

std::vector<std::int64_t> DividedNearest::row_cuts(std::int64_t n) const {
  return equal_cuts(n, crew_->size(), kFilterWord);
}

std::vector<std::int64_t> DividedNearest::query_cuts(const NearestTask& task) const {
  return equal_cuts(task.queries.rows(), crew_->size(), 1);
}

void DividedNearest::prepare(const Context& ctx, kernels::Prepared& index) const {
  const auto shards = std::make_shared<Shards>(index, row_cuts(index.table.rows()));
  crew_->run("prepare", ctx, static_cast<std::int64_t>(shards->of.size()),
             [&](std::int64_t i) { of(i).prepare(crew_->context(i), *shards->of[static_cast<std::size_t>(i)]); });
  index.centre = shards->of.front()->centre;
  index.largest = 0;
  for (const auto& shard : shards->of) index.largest = std::max(index.largest, largest_from(index.centre, *shard));
  index.device.put(crew_->number(), shards);
}

std::uint64_t DividedNearest::prepare_bytes(const Context& ctx, const TableView& table) const {
  const std::vector<std::int64_t> cuts = row_cuts(table.rows());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    bytes += of(static_cast<std::int64_t>(i)).prepare_bytes(ctx, table.slice(cuts[i], cuts[i + 1]));
  }
  return bytes;
}

std::shared_ptr<const DividedNearest::Shards> DividedNearest::prepared_shards(const kernels::Prepared& index) const {
  return std::static_pointer_cast<const Shards>(index.device.get(crew_->number()));
}

std::shared_ptr<const DividedNearest::Shards> DividedNearest::shards_of(const kernels::Prepared& index) const {
  if (auto held = prepared_shards(index)) return held;
  // It was prepared elsewhere, and what holds for its rows holds for some of them.
  const auto made = std::make_shared<Shards>(index, row_cuts(index.table.rows()));
  index.device.put(crew_->number(), made);
  return made;
}

bool DividedNearest::divides_rows(const NearestTask& task) const {
  if (task.method == Method::kdtree || task.collect == kernels::Collect::radius || task.lists_stay) return false;
  if (task.index->table.rows() <= kFilterWord) return false;
  if (!std::all_of(members_.begin(), members_.end(), [&](const auto& member) { return member->stays(*task.index); })) {
    return true;
  }
  const std::uint64_t list =
      task.collect == kernels::Collect::k_list ? static_cast<std::uint64_t>(task.k) * kNeighborBytes : 8;
  return kFewLists * list * static_cast<std::uint64_t>(task.queries.rows()) < table_bytes(task.index->table);
}

void DividedNearest::take_queries(const NearestTask& task, std::int64_t begin, std::int64_t end, std::int64_t member,
                                  SearchPart& part) {
  part.begin = begin;
  part.task = task;
  part.task.queries = task.queries.slice(begin, end);
  part.task.max_keys = {};
  part.task.first_query = (task.self ? task.first_id : task.first_query) + begin;
  part.task.same_rows = task.has_own_rows();
  part.task.self = false;
  const auto count = static_cast<std::size_t>(end - begin);
  if (!task.exclude.empty()) part.task.exclude = task.exclude.subspan(static_cast<std::size_t>(begin), count);
  if (!task.radii.empty()) part.task.radii = task.radii.subspan(static_cast<std::size_t>(begin), count);
  if (task.tree != nullptr) part.task.tree = static_cast<const Trees*>(task.tree)->of(member);
}

void DividedNearest::take_rows(const NearestTask& task, const Shards* shards, std::int64_t member,
                               const std::vector<std::int64_t>& cuts, SearchPart& part) const {
  const auto i = static_cast<std::size_t>(member);
  const std::int64_t begin = cuts[i];
  const std::int64_t n = cuts[i + 1] - begin;
  part.begin = begin;
  part.task = task;
  NearestTask& own = part.task;
  own.max_keys = {};
  if (shards != nullptr) {
    own.index = shards->of[i].get();
  } else {
    part.shape.table = task.index->table.slice(begin, cuts[i + 1]);
    part.shape.centre.assign(static_cast<std::size_t>(task.queries.cols()), 0);
    own.index = &part.shape;
  }
  own.first_id = task.first_id + begin;
  own.first_query = task.self ? task.first_id : task.first_query;
  own.same_rows = task.has_own_rows();
  own.self = false;
  if (!task.filter.empty()) {
    own.filter = task.filter.subspan(static_cast<std::size_t>(begin / kFilterWord),
                                     static_cast<std::size_t>((n + kFilterWord - 1) / kFilterWord));
  }
  if (!task.exclude.empty()) {
    part.exclude.reserve(task.exclude.size());
    for (const std::int64_t id : task.exclude) part.exclude.push_back(id >= begin && id < begin + n ? id - begin : -1);
    own.exclude = part.exclude;
  }
  if (task.collect != kernels::Collect::k_list) return;
  own.keys = true;
  const std::int64_t left_out = (task.has_own_rows() ? 1 : 0) + (task.exclude.empty() ? 0 : 1);
  part.lists_all = task.k > kernels::eligible_rows(own.filter, n) - left_out;
  if (!part.lists_all) return;
  own.collect = kernels::Collect::radius;
  own.radius = kInfinity;
  own.max_key = kInfinity;
  own.method = Method::direct;
  own.screen = ScreenType::automatic;
}

void DividedNearest::take_part(const NearestTask& task, bool by_rows, std::int64_t member, SearchPart& part) const {
  if (by_rows) {
    const auto shards = prepared_shards(*task.index);
    return take_rows(task, shards.get(), member, row_cuts(task.index->table.rows()), part);
  }
  NearestTask looked_at = task;
  looked_at.tree = nullptr;
  const std::vector<std::int64_t> cuts = query_cuts(task);
  const auto at = static_cast<std::size_t>(member);
  take_queries(looked_at, cuts[at], cuts[at + 1], member, part);
}

std::int64_t DividedNearest::parts_of(const NearestTask& task, bool by_rows) const {
  return std::ssize(by_rows ? row_cuts(task.index->table.rows()) : query_cuts(task)) - 1;
}

bool DividedNearest::can_fuse(const NearestTask& task) const {
  const bool by_rows = divides_rows(task);
  for (std::int64_t i = 0; i < parts_of(task, by_rows); ++i) {
    SearchPart part;
    take_part(task, by_rows, i, part);
    part.task.collect = task.collect;
    if (!of(i).can_fuse(part.task)) return false;
  }
  return true;
}

kernels::Choice DividedNearest::choose(const Context& ctx, const NearestTask& task) const {
  const bool by_rows = divides_rows(task);
  kernels::Choice choice;
  for (std::int64_t i = 0; i < parts_of(task, by_rows); ++i) {
    SearchPart part;
    take_part(task, by_rows, i, part);
    part.task.collect = task.collect;
    const kernels::Choice own = of(i).choose(ctx, part.task);
    if (i == 0 || own.method == choice.method) {
      choice = own;
      continue;
    }
    // Parts may be so small that they take method direct, which all devices serve.
    const kernels::Choice& fused = own.method == Method::fused ? own : choice;
    const kernels::Choice& direct = own.method == Method::fused ? choice : own;
    return can_fuse(task) ? fused : direct;
  }
  return choice;
}

kernels::Costs DividedNearest::costs(const Context& ctx, const NearestTask& task) const {
  SearchPart part;
  take_part(task, divides_rows(task), 0, part);
  part.task.method = task.method;
  kernels::Costs costs = of(0).costs(ctx, part.task);
  costs.tree_query /= static_cast<double>(crew_->size());
  costs.tree_row /= static_cast<double>(crew_->size());
  return costs;
}

std::string DividedNearest::screens(const Context& ctx, const NearestTask& task) const {
  SearchPart part;
  take_part(task, divides_rows(task), 0, part);
  part.task.method = task.method;
  part.task.collect = task.collect;
  return of(0).screens(ctx, part.task);
}

bool DividedNearest::can_use_tree(const NearestTask& task) const {
  SearchPart part;
  take_part(task, false, 0, part);
  return of(0).can_use_tree(part.task);
}

bool DividedNearest::has_room_for_tree(const Context& ctx, const NearestTask& task) const {
  SearchPart part;
  take_part(task, false, 0, part);
  return std::all_of(members_.begin(), members_.end(),
                     [&](const auto& member) { return member->has_room_for_tree(ctx, part.task); });
}

bool DividedNearest::can_use_paper(Method method, Metric metric, std::int64_t d) const {
  return of(0).can_use_paper(method, metric, d);
}

std::shared_ptr<const kernels::Tree> DividedNearest::build_tree(const Context& ctx,
                                                                const kernels::Prepared& index) const {
  std::vector<std::shared_ptr<const kernels::Tree>> trees(members_.size());
  crew_->run("tree", ctx, crew_->size(), [&](std::int64_t i) {
    auto& tree = trees[static_cast<std::size_t>(i)];
    const int number = crew_->device(i)->number();
    tree = index.tree.get(number);
    if (tree == nullptr) tree = of(i).build_tree(crew_->context(i), index);
    index.tree.keep(tree, number);
  });
  return std::make_shared<const Trees>(std::move(trees));
}

std::uint64_t DividedNearest::tree_bytes(const kernels::Prepared& index) const {
  return of(0).tree_bytes(index) * members_.size();
}

void DividedNearest::search(const Context& ctx, const NearestTask& task, kernels::NearestResult& result) const {
  switch (task.collect) {
    case kernels::Collect::k_list:
      return find_lists(ctx, task, result.ids.data(), result.distances.data(), result.stats);
    case kernels::Collect::count:
      return find_counts(ctx, task, result.counts, result.stats);
    case kernels::Collect::radius:
      return find_within_divided(ctx, *crew_, *this, task, result);
  }
}

void DividedNearest::search_into(const Context& ctx, const NearestTask& task, const kernels::ListMemory& lists,
                                 SearchStats& stats) const {
  find_lists(ctx, task, lists.ids, lists.distances, stats);
}

void DividedNearest::find_lists(const Context& ctx, const NearestTask& task, std::int64_t* ids, double* distances,
                                SearchStats& stats) const {
  if (divides_rows(task)) return merge_lists(ctx, task, ids, distances, stats);
  std::vector<SearchStats> counted(query_cuts(task).size() - 1);
  find_by_queries(ctx, task, [&](std::int64_t i, const SearchPart& part) {
    of(i).search_into(crew_->context(i), part.task,
                      {ids + part.begin * task.k, distances + part.begin * task.k, Memory::host},
                      counted[static_cast<std::size_t>(i)]);
  });
  for (const SearchStats& from : counted) add_stats(from, stats);
  stats.distinct_rows = counted.front().distinct_rows;
}

/// Queries whose lists of all devices are held at once.
std::int64_t DividedNearest::queries_at_once(const NearestTask& task) const {
  const auto query = static_cast<std::uint64_t>(task.k + 2) * kNeighborBytes * members_.size();
  const auto room = static_cast<std::int64_t>(kRoundBytes / query);
  return std::min(task.queries.rows(), std::max(room, kMergedAtOnce));
}

void DividedNearest::merge_lists(const Context& ctx, const NearestTask& task, std::int64_t* ids, double* distances,
                                 SearchStats& stats) const {
  const auto shards = shards_of(*task.index);
  const std::int64_t m = task.queries.rows();
  const std::int64_t step = queries_at_once(task);
  const std::int64_t k = task.k;
  for (std::int64_t begin = 0; begin < m; begin += step) {
    SearchPart round;
    take_queries(task, begin, std::min(m, begin + step), 0, round);
    std::vector<RowLists> found;
    find_by_rows(ctx, task, round.task, [&](const NearestTask& own) {
      found = std::vector<RowLists>(shards->of.size());
      crew_->run("rows", ctx, std::ssize(found), [&](std::int64_t i) {
        SearchPart part;
        take_rows(own, shards.get(), i, shards->cuts, part);
        found[static_cast<std::size_t>(i)].find(crew_->context(i), of(i), part);
      });
    });
    const std::int64_t queries = round.task.queries.rows();
    core::parallel_for(ctx, (queries + kMergedAtOnce - 1) / kMergedAtOnce, [&](std::int64_t block, int /*worker*/) {
      std::vector<RowLists::Head> heads(found.size());
      for (std::int64_t q = block * kMergedAtOnce; q < std::min(queries, (block + 1) * kMergedAtOnce); ++q) {
        for (std::size_t i = 0; i < found.size(); ++i) heads[i] = found[i].head_of(q, k);
        std::int64_t* const to_ids = ids + (begin + q) * k;
        double* const to_distances = distances + (begin + q) * k;
        for (std::int64_t rank = 0; rank < k; ++rank) {
          RowLists::Head* best = nullptr;
          for (RowLists::Head& head : heads) {  // ids ascend with the devices
            if (head.left > 0 && *head.ids >= 0 && (best == nullptr || *head.keys < *best->keys)) best = &head;
          }
          to_ids[rank] = best != nullptr ? *best->ids + best->first : -1;
          if (best == nullptr) continue;
          to_distances[rank] = task.reported(*best->keys);
          ++best->ids;
          ++best->keys;
          --best->left;
        }
      }
    });
    for (const RowLists& lists : found) add_stats(lists.stats, stats);
  }
  stats.distinct_rows = task.index->table.rows();
}

void DividedNearest::find_counts(const Context& ctx, const NearestTask& task, std::vector<std::int64_t>& counts,
                                 SearchStats& stats) const {
  struct Counted {
    std::vector<std::int64_t> counts;
    std::int64_t first = 0;
    SearchStats stats;
  };
  const bool by_rows = divides_rows(task);
  std::vector<Counted> found(static_cast<std::size_t>(parts_of(task, by_rows)));
  const auto find = [&](std::int64_t i, const SearchPart& part) {
    Counted& to = found[static_cast<std::size_t>(i)];
    to.counts.resize(static_cast<std::size_t>(part.task.queries.rows()));
    std::vector<std::int64_t> ids;
    std::vector<double> distances;
    std::vector<std::int64_t> offsets;
    kernels::NearestResult result{ids, distances, offsets, to.counts, to.stats};
    of(i).search(crew_->context(i), part.task, result);
  };
  if (by_rows) {
    const auto shards = shards_of(*task.index);
    find_by_rows(ctx, task, task, [&](const NearestTask& own) {
      crew_->run("rows", ctx, std::ssize(found), [&](std::int64_t i) {
        SearchPart part;
        take_rows(own, shards.get(), i, shards->cuts, part);
        find(i, part);
      });
    });
  } else {
    find_by_queries(ctx, task, [&](std::int64_t i, const SearchPart& part) {
      found[static_cast<std::size_t>(i)].first = part.begin;
      find(i, part);
    });
  }
  for (const Counted& part : found) {
    for (std::size_t q = 0; q < part.counts.size(); ++q) {
      counts[static_cast<std::size_t>(part.first) + q] += part.counts[q];
    }
    add_stats(part.stats, stats);
  }
  stats.distinct_rows = task.index->table.rows();
}

bool DividedNearest::holds_lists(const NearestTask& task, const VoteOptions* voting) const {
  return voting != nullptr && (divides_rows(task) || of(0).holds_lists(task, voting));
}

void DividedNearest::classify(const Context& ctx, const NearestTask& task, const kernels::VoteTask& votes,
                              std::span<Vote> result, SearchStats& stats) const {
  if (holds_lists(task, votes.options)) {
    return NearestBackend::classify(ctx, task, votes, result, stats);
  }
  std::vector<SearchStats> counted(query_cuts(task).size() - 1);
  find_by_queries(ctx, task, [&](std::int64_t i, const SearchPart& part) {
    of(i).vote_in_search(crew_->context(i), part.task, *votes.options, outputs_of(votes, result, part.begin),
                         counted[static_cast<std::size_t>(i)]);
  });
  for (const SearchStats& from : counted) add_stats(from, stats);
  stats.distinct_rows = counted.front().distinct_rows;
}

void DividedNearest::vote(const Context& ctx, const kernels::VoteTask& task, std::span<Vote> result) const {
  kernels::cpu_backend().nearest().vote(ctx, task, result);
}

kernels::MemoryNeed DividedNearest::search_bytes(const Context& ctx, const NearestTask& task) const {
  const bool by_rows = divides_rows(task);
  kernels::MemoryNeed need = {host_bytes(ctx, task), 0};
  for (std::int64_t i = 0; i < parts_of(task, by_rows); ++i) {
    SearchPart part;
    take_part(task, by_rows, i, part);
    need.device = std::max(need.device, of(i).search_bytes(ctx, part.task).device);
  }
  return need;
}

std::uint64_t DividedNearest::host_bytes(const Context& ctx, const NearestTask& task) const {
  const bool by_rows = divides_rows(task);
  SearchPart part;
  take_part(task, by_rows, 0, part);
  if (task.collect == kernels::Collect::radius) part.task.in_batches = true;
  std::uint64_t bytes = of(0).host_bytes(ctx, part.task) * members_.size();
  const auto m = static_cast<std::uint64_t>(task.queries.rows());
  if (by_rows && task.collect == kernels::Collect::k_list) {
    const auto queries = static_cast<std::uint64_t>(queries_at_once(task));
    bytes += queries * static_cast<std::uint64_t>(task.k + 2) * kNeighborBytes * members_.size();
  }
  if (by_rows && !task.exclude.empty()) bytes += m * 8 * members_.size();
  if (task.collect == kernels::Collect::count) bytes += m * 8 * (by_rows ? members_.size() : 1);
  return task.collect == kernels::Collect::radius ? bytes + within_divided_bytes(*crew_, task) : bytes;
}

}  // namespace vicinal::plugin

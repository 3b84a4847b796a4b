// See nearest.hpp. What a device does not serve yet (custom weights, votes on graphs that lie in host memory) is the
// CPU's: nothing of that is chosen for a search here, but an index made here can be asked there.
#include "plugin/cuda/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "core/distance.hpp"
#include "core/memory.hpp"
#include "core/poll.hpp"
#include "formulas/nearest/byte_screen.hpp"
#include "formulas/nearest/few_queries.hpp"
#include "formulas/nearest/radius.hpp"
#include "plugin/cuda/staging.hpp"
#include "plugin/cuda/tree.hpp"

namespace vicinal::plugin {
namespace {

using kernels::Collect;
using kernels::NearestTask;

// What one multiprocessor does in a second: columns of pairs in float64, where it has float64 units in earnest and
// where it has two of them for show, and columns through the fused screen.
constexpr double kDirectRate = 2.5e10;
constexpr double kDirectRateOfFew = 1.5e9;
constexpr double kFusedRate = 2.9e12;
constexpr double kPortableShare = 0.5;  // of it, by mma.sync
// Of few queries: bytes of the table, and columns of pairs, most of them in tf32; and what all takes besides, which is
// what a search of one query takes beyond one reading of the table (0.15 ms of 0.12:
// knn-few-h200-2026-11-30-165ab42b.json).
constexpr double kReadRate = 2.2e10;
constexpr double kFewRate = 2.5e11;
constexpr double kFewStart = 3e-5;
constexpr double kFusedColumns = 70;  // that a pair of the screen costs besides its own
constexpr double kPairColumns = 8;    // columns that a pair costs besides its own
// What one multiprocessor takes for a tree, in seconds: guessed from the instructions of a warp.
constexpr double kTreeBuildRow = 2e-8;     // for each row and doubling of the table
constexpr double kTreeBuildColumn = 1e-9;  // for each column of such a row
constexpr double kTreeQuery = 1e-6;
constexpr double kTreeColumn = 4e-10;        // for each column of a row touched, kPairColumns added
constexpr double kTreeColumnOfFew = 1.5e-9;  // and besides, where there are few float64 units
constexpr double kTreeColumnAlone = 2.4e-9;  // for a query by itself
constexpr double kTreeStart = 1.2e-3;        // in all: launches, one after the other
constexpr double kPowerColumns = 150;        // that a power costs
constexpr double kTransferRate = 2e10;       // bytes to the device a second
constexpr std::int64_t kKDistances = 1024;

/// Lists that are cut are cut one call after the other: room for those of one call, at least those of one query.
std::uint64_t list_room(const NearestTask& task) {
  constexpr std::uint64_t kUsual = std::uint64_t{32} << 20;
  const std::uint64_t one = static_cast<std::uint64_t>(task.index->table.rows()) * kNeighborBytes;
  const auto m = static_cast<std::uint64_t>(task.queries.rows());
  return m > kUsual / one ? std::max(one, kUsual) : m * one;
}
/// Whether method direct reads the table once for all queries.
bool are_few(const NearestTask& task) {
  return task.collect == Collect::k_list &&
         core::few_queries_serve(task.metric, task.index->table.dtype(), task.queries.dtype(), task.queries.rows(),
                                 task.queries.cols(), task.k);
}
/// Whether the device finds more than is asked for: it knows one radius. Then its lists are cut here.
bool are_cut(const NearestTask& task) {
  return task.collect != Collect::k_list && !task.radii.empty();
}

/// Room for the neighbors within a radius: how many there are is not known before, so each growth is held against the
/// limit. With a Handover, and where lists are cut, there is room for those of one call, taken before the next. Lists
/// come in the order of (key, id), each within the largest radius; they are cut to their own, and put into the order of
/// ids.
class Room {
 public:
  Room(Call& call, const NearestTask& task, kernels::NearestResult& result, std::uint64_t scratch)
      : call_(call),
        task_(task),
        result_(result),
        counts_(task.collect == Collect::count),
        bytes_(task.bytes_beside + scratch) {
    result_.offsets.assign(1, 0);
    kept_.offsets.assign(1, 0);
    if (keeps()) bytes_ -= list_room(task);
  }

  [[nodiscard]] std::int64_t most_neighbors() const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (result_.handover == nullptr) {
      return static_cast<std::int64_t>(are_cut(task_) ? list_room(task_) / kNeighborBytes : kMost);
    }
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(result_.handover->room / kNeighborBytes, 1, kMost));
  }
  /// Finishes the lists that were found since, and has them taken where there is a Handover.
  void hand_over() {
    finish_lists();
    if (result_.handover != nullptr && result_.offsets.size() > 1) result_.handover->take(first_);
    if (result_.handover == nullptr && !are_cut(task_)) return;
    if (keeps()) keep();
    first_ += static_cast<std::int64_t>(result_.offsets.size()) - 1;
    std::vector<std::int64_t>().swap(result_.ids);
    std::vector<double>().swap(result_.distances);
    result_.offsets.assign(1, 0);
    finished_ = 0;
  }

  /// Of all lists, once the last ones are found.
  void end() {
    hand_over();
    if (!keeps()) return;
    result_.ids.swap(kept_.ids);
    result_.distances.swap(kept_.distances);
    result_.offsets.swap(kept_.offsets);
  }

  static std::int32_t make(void* user, const std::int64_t* counts, std::int64_t queries, std::int64_t** ids,
                           double** distances) {
    Room& room = *static_cast<Room*>(user);
    return room.call_.keep([&] {
      room.hand_over();
      const std::size_t size = room.result_.ids.size();
      for (std::int64_t q = 0; q < queries; ++q) {
        room.result_.offsets.push_back(room.result_.offsets.back() + counts[q]);
      }
      const auto total = static_cast<std::size_t>(room.result_.offsets.back());
      const kernels::Handover* const handover = room.result_.handover;
      if (handover != nullptr && total * kNeighborBytes > handover->room) throw kernels::NoRoom{};
      if (are_cut(room.task_) && handover == nullptr) {  // within list_room
        room.result_.ids.resize(total);
        room.result_.distances.resize(total);
      } else {
        room.grow(room.result_.ids, total);
        room.grow(room.result_.distances, total);
      }
      *ids = room.result_.ids.data() + size;
      *distances = room.result_.distances.data() + size;
    });
  }

 private:
  template <class T>
  void grow(std::vector<T>& values, std::size_t total) {
    if (values.capacity() < total) {
      const std::uint64_t before = values.capacity() * sizeof(T);
      const std::size_t capacity = std::max(total, values.capacity() + values.capacity() / 2);
      // Old and new stand side by side while it moves.
      if (result_.handover == nullptr) {
        core::require_memory(call_.context(), bytes_ + capacity * sizeof(T), "radius: the neighbors found so far");
      }
      values.reserve(capacity);
      bytes_ += capacity * sizeof(T) - before;
    }
    values.resize(total);
  }

  /// Whether lists are cut and stay here: as much room as the lists of a call have is planned for them.
  [[nodiscard]] bool keeps() const { return result_.handover == nullptr && !counts_ && are_cut(task_); }
  /// Moves lists that are cut to those that stay.
  void keep() {
    const std::size_t before = kept_.ids.size();
    grow(kept_.ids, before + result_.ids.size());
    grow(kept_.distances, before + result_.ids.size());
    const auto begin = static_cast<std::ptrdiff_t>(before);
    std::copy(result_.ids.begin(), result_.ids.end(), kept_.ids.begin() + begin);
    std::copy(result_.distances.begin(), result_.distances.end(), kept_.distances.begin() + begin);
    for (std::size_t q = 1; q < result_.offsets.size(); ++q) {
      kept_.offsets.push_back(static_cast<std::int64_t>(before) + result_.offsets[q]);
    }
  }

  void finish_lists() {
    if (task_.radii.empty() && !task_.by_id) return;
    std::vector<std::int64_t>& offsets = result_.offsets;
    std::int64_t from = offsets[finished_];
    std::int64_t to = from;
    for (; finished_ + 1 < offsets.size(); ++finished_) {
      call_.context().check_cancelled();
      const std::int64_t end = offsets[finished_ + 1];
      const std::int64_t kept = from + within(static_cast<std::int64_t>(finished_), from, end);
      if (counts_) {
        result_.counts[static_cast<std::size_t>(first_) + finished_] = kept - from;
      } else if (to != from) {
        std::copy(result_.ids.begin() + from, result_.ids.begin() + kept, result_.ids.begin() + to);
        std::copy(result_.distances.begin() + from, result_.distances.begin() + kept, result_.distances.begin() + to);
      }
      if (task_.by_id && !counts_) sort_by_id(to, to + kept - from);
      to += kept - from;
      from = end;
      offsets[finished_ + 1] = to;
    }
    result_.ids.resize(static_cast<std::size_t>(to));
    result_.distances.resize(static_cast<std::size_t>(to));
  }
  /// How many of a query's neighbors lie within its own radius: the first ones.
  [[nodiscard]] std::int64_t within(std::int64_t query, std::int64_t begin, std::int64_t end) const {
    if (task_.radii.empty()) return end - begin;
    const auto list = result_.distances.begin();
    const double radius = task_.radii[static_cast<std::size_t>(first_ + query)];
    const double most = task_.keys ? core::largest_key_within(task_.metric, radius, task_.p) : radius;
    return std::upper_bound(list + begin, list + end, most) - (list + begin);
  }
  void sort_by_id(std::int64_t begin, std::int64_t end) {
    std::vector<std::pair<std::int64_t, double>> list;
    list.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) {
      list.emplace_back(result_.ids[static_cast<std::size_t>(i)], result_.distances[static_cast<std::size_t>(i)]);
    }
    core::Poll poll(call_.context());
    std::sort(list.begin(), list.end(), [&poll](const auto& a, const auto& b) {
      poll.step();
      return a.first < b.first;
    });
    for (std::int64_t i = begin; i < end; ++i) {
      const auto& [id, distance] = list[static_cast<std::size_t>(i - begin)];
      result_.ids[static_cast<std::size_t>(i)] = id;
      result_.distances[static_cast<std::size_t>(i)] = distance;
    }
  }

  struct Lists {
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> ids;
    std::vector<double> distances;
  };

  Call& call_;
  const NearestTask& task_;
  kernels::NearestResult& result_;
  bool counts_;
  std::uint64_t bytes_;
  Lists kept_;                // once they are cut, where keeps()
  std::int64_t first_ = 0;    // query whose list comes first of those that there are
  std::size_t finished_ = 0;  // of these lists
};

class DeviceNearest final : public CudaNearest {
 public:
  explicit DeviceNearest(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  void prepare(const Context& ctx, kernels::Prepared& index) const override {
    index.centre.assign(static_cast<std::size_t>(index.table.cols()), 0);
    Preparation found;
    found.centre = index.centre.data();
    found.first_row = index.first_id;
    device_->use(ctx, [&](void* engine, Call& call, Status& status) {
      const BorrowedTable table(call, index.table);
      const HostCalls host = call.host();
      device_->functions().prepare(engine, &host, &table.table(), &found, &status);
    });
    index.largest = found.largest;
    if (found.resident != nullptr)
      index.device.put(device_->number(), device_->own(found.resident, device_->functions().release));
  }
  std::uint64_t prepare_bytes(const Context& /*ctx*/, const TableView& table) const override {
    return staging_bytes(table) + static_cast<std::uint64_t>(table.cols()) * sizeof(double);
  }
  void check_queries(const Context& /*ctx*/, const NearestTask& /*task*/) const override {}

  bool can_fuse(const NearestTask& task) const override {
    const bool has_screen = task.screen == ScreenType::automatic || (task.screen == ScreenType::int8 && in_bytes(task));
    if (!has_screen) return false;
    Search asked = looked_at(task);
    asked.method = static_cast<std::int32_t>(Method::fused);
    return device_->functions().fused_serves(device_->engine(), &asked) != 0;
  }
  kernels::Choice choose(const Context& /*ctx*/, const NearestTask& task) const override {
    const bool stays = this->stays(*task.index);
    if (task.screen == ScreenType::automatic && are_few(task)) {
      return {Method::direct, stays ? "for so few queries the table is read once, and sums with a proven bound "
                                      "drop almost every row before its key is needed"
                                    : "the table does not fit the device, so it is streamed; for so few queries "
                                      "sums with a proven bound drop almost every row before its key is needed"};
    }
    if (can_fuse(task)) {
      return {Method::fused, stays
                                 ? "tensor-core products with a proven bound drop almost every row before its key is "
                                   "needed"
                                 : "the table does not fit the device, so it is streamed; tensor-core products with a "
                                   "proven bound drop almost every row before its key is needed"};
    }
    return {Method::direct, stays ? "no screen on this device serves such a search, so every key is computed"
                                  : "the table does not fit the device, so it is streamed; no screen serves such a "
                                    "search, so every key is computed"};
  }
  kernels::Costs costs(const Context& /*ctx*/, const NearestTask& task) const override {
    const EngineFacts& facts = device_->facts();
    const double pairs = static_cast<double>(task.queries.rows()) * static_cast<double>(task.index->table.rows());
    const bool in_earnest =
        facts.compute_capability == 80 || facts.compute_capability == 90 || facts.compute_capability == 100;
    double rate = in_earnest ? kDirectRate : kDirectRateOfFew;
    if (task.method == Method::fused) {
      rate = std::string_view(facts.matrix_instruction) == "wgmma" ? kFusedRate : kFusedRate * kPortableShare;
    }
    auto columns = static_cast<double>(task.queries.cols());
    if (task.metric == Metric::minkowski) columns *= kPowerColumns;
    kernels::Costs costs;
    const double more = task.method == Method::fused ? kFusedColumns : kPairColumns;
    costs.brute = pairs * (columns + more) / (rate * facts.multiprocessors);
    if (task.method == Method::direct && are_few(task)) {
      costs.brute =
          kFewStart + (static_cast<double>(table_bytes(task.index->table)) / kReadRate + pairs * columns / kFewRate) /
                          facts.multiprocessors;
    }
    if (task.queries.memory() != Memory::cuda) {
      costs.brute += static_cast<double>(table_bytes(task.queries)) / kTransferRate;
    }
    if (resident_of(*task.index) == nullptr) {
      costs.brute += static_cast<double>(table_bytes(task.index->table)) / kTransferRate;
    }
    costs.brute_fine = costs.brute;
    costs.tree_start = kTreeStart;
    costs.tree_row_alone = (static_cast<double>(task.queries.cols()) + kPairColumns) * kTreeColumnAlone;
    const auto d = static_cast<double>(task.queries.cols());
    costs.tree_build = (kTreeBuildRow + kTreeBuildColumn * d) / facts.multiprocessors;
    costs.tree_query = kTreeQuery / facts.multiprocessors;
    costs.tree_row = (columns + kPairColumns) * kTreeColumn / facts.multiprocessors;
    if (!in_earnest) costs.tree_row += columns * kTreeColumnOfFew / facts.multiprocessors;
    return costs;
  }
  std::string screens(const Context& /*ctx*/, const NearestTask& task) const override {
    if (kernels::is_product(task.method)) return "float32";
    if (task.method == Method::direct && are_few(task)) {
      const Search asked = looked_at(task);
      return device_->functions().few_multiply(device_->engine(), &asked) != 0 ? "tf32" : "float32";
    }
    if (task.method != Method::fused) return "";
    return in_bytes(task) ? "int8" : "float16";
  }

  bool can_use_tree(const NearestTask& task) const override { return in_tree(task) != 0; }
  bool has_room_for_tree(const Context& /*ctx*/, const NearestTask& task) const override { return in_tree(task) > 0; }
  bool can_use_paper(Method method, Metric metric, std::int64_t d) const override {
    return kernels::cpu_backend().nearest().can_use_paper(method, metric, d);
  }
  std::shared_ptr<const kernels::Tree> build_tree(const Context& ctx, const kernels::Prepared& index) const override {
    std::shared_ptr<void> resident;  // let go of after the device
    void* made = nullptr;
    device_->use(ctx, [&](void* engine, Call& call, Status& status) {
      const BorrowedTable table(call, index.table);
      resident = take_in(index, table, engine, call, status);
      if (status.code != kOk) return;
      if (resident == nullptr) {
        throw Error(ErrorCode::over_memory,
                    "method: kdtree needs the table in device memory, where there is no room left for it within the "
                    "limit; direct does not");
      }
      const HostCalls host = call.host();
      device_->functions().build_tree(engine, &host, resident.get(), &made, &status);
    });
    return std::make_shared<const DeviceTree>(device_, made, index.table.rows());
  }
  std::uint64_t tree_bytes(const kernels::Prepared& index) const override { return staging_bytes(index.table); }

  void search(const Context& ctx, const NearestTask& task, kernels::NearestResult& result) const override {
    run_search(ctx, task, result.stats, [&](Call& call, Search& asked, Counters& counters, Status& status) {
      asked.ids = result.ids.data();
      asked.distances = result.distances.data();
      asked.counts = result.counts.data();
      if (asked.collect != kRadius) return run(call, asked, counters, status);
      Room room(call, task, result, host_bytes(ctx, task));
      asked.make_room = Room::make;
      asked.user = &room;
      asked.most_neighbors = room.most_neighbors();
      run(call, asked, counters, status);
      if (status.code == kOk) room.end();
    });
  }
  void search_into(const Context& ctx, const NearestTask& task, const kernels::ListMemory& lists,
                   SearchStats& stats) const override {
    run_search(ctx, task, stats, [&](Call& call, Search& asked, Counters& counters, Status& status) {
      asked.ids = lists.ids;
      asked.distances = lists.distances;
      asked.memory = static_cast<std::int32_t>(lists.memory);
      run(call, asked, counters, status);
    });
  }
  void classify(const Context& ctx, const NearestTask& task, const kernels::VoteTask& votes, std::span<Vote> result,
                SearchStats& stats) const override {
    if (holds_lists(task, votes.options)) return NearestBackend::classify(ctx, task, votes, result, stats);
    vote_in_search(ctx, task, *votes.options, outputs_of(votes, result, 0), stats);
  }
  void vote_in_search(const Context& ctx, const NearestTask& task, const VoteOptions& options,
                      const std::vector<VoteOutput>& outputs, SearchStats& stats) const override {
    run_search(ctx, task, stats, [&](Call& call, Search& asked, Counters& counters, Status& status) {
      asked.outputs = outputs.data();
      asked.output_count = static_cast<std::int64_t>(outputs.size());
      asked.weights = options.weights == Weighting::distance ? 1 : 0;
      run(call, asked, counters, status);
    });
  }
  bool holds_lists(const NearestTask& /*task*/, const VoteOptions* voting) const override {
    return voting != nullptr && voting->weights == Weighting::custom;
  }
  std::uint64_t host_bytes(const Context& /*ctx*/, const NearestTask& task) const override {
    std::uint64_t bytes = staging_bytes(task.index->table);
    if (!task.self) bytes = std::max(bytes, staging_bytes(task.queries));
    if (task.collect != Collect::k_list) bytes += static_cast<std::uint64_t>(task.queries.rows()) * 16;
    if (are_cut(task) && !task.in_batches) {
      bytes += list_room(task);
      if (task.collect == Collect::radius) bytes += list_room(task);  // for lists that are kept
    }
    if (task.collect == Collect::radius && task.by_id) {
      bytes += static_cast<std::uint64_t>(task.index->table.rows()) * 16;  // the list that is being sorted
    }
    return bytes;
  }
  kernels::MemoryNeed search_bytes(const Context& ctx, const NearestTask& task) const override {
    const auto tree = task.index->tree.get(device_->number());
    Search asked = looked_at(task);
    if (task.method == Method::kdtree) asked.tree = on_device(tree.get());
    kernels::MemoryNeed bytes = {host_bytes(ctx, task), 0};
    Status status;
    device_->functions().plan(device_->engine(), &asked, &bytes.device, &status);
    device_->check(status);
    return bytes;
  }
  void vote(const Context& ctx, const kernels::VoteTask& task, std::span<Vote> result) const override {
    kernels::cpu_backend().nearest().vote(ctx, task, result);
  }
  void run_search(const Context& ctx, const NearestTask& task, SearchStats& stats, const Place& place) const override {
    std::shared_ptr<void> resident;  // let go of after the device
    Counters counters;
    const auto k_distances = k_distances_of(ctx, task);
    device_->use(ctx, [&](void* engine, Call& call, Status& status) {
      const BorrowedTable table(call, task.index->table);
      const BorrowedTable queries(call, task.queries);
      resident = take_in(*task.index, table, engine, call, status);
      if (status.code != kOk) return;
      Search asked = search_of(task, table.table(), queries.table());
      asked.resident = resident.get();
      if (task.method == Method::kdtree) asked.tree = on_device(task.tree);
      if (task.collect != Collect::k_list) {
        asked.largest_key = core::largest_key_within(task.metric, task.radius, task.p);
      }
      if (k_distances) {
        asked.k_distances = k_distances->keys.data();
        asked.k_distance_count = static_cast<std::int64_t>(k_distances->keys.size());
      }
      place(call, asked, counters, status);
    });
    stats.distinct_rows = counters.distinct_rows;
    stats.survivors += counters.survivors;
    stats.escalated += counters.escalated;
    stats.uncertified += counters.uncertified;
    stats.selection_seconds += counters.selection_seconds;
  }
  Search looked_at(const NearestTask& task) const override {
    Search asked = search_of(task, BorrowedTable::shape_of(task.index->table), BorrowedTable::shape_of(task.queries));
    asked.resident = resident_of(*task.index).get();
    asked.stays = asked.resident == nullptr && stays(*task.index) ? 1 : 0;
    if (task.lists_stay) asked.memory = static_cast<std::int32_t>(Memory::cuda);
    return asked;
  }
  bool stays(const kernels::Prepared& index) const override {
    if (resident_of(index) != nullptr) return true;
    const Table table = BorrowedTable::shape_of(index.table);
    return device_->functions().fits(device_->engine(), &table) != 0;
  }

 private:
  [[nodiscard]] std::shared_ptr<void> resident_of(const kernels::Prepared& index) const {
    return index.device.get(device_->number());
  }
  /// Whether the fused screen multiplies bytes.
  [[nodiscard]] bool in_bytes(const NearestTask& task) const {
    return core::byte_screen_serves(task.index->table.dtype(), task.queries.dtype(), task.metric, task.queries.cols(),
                                    device_->facts().compiled_for);
  }

  static Search search_of(const NearestTask& task, const Table& table, const Table& queries) {
    Search asked;
    asked.table = table;
    asked.centre = task.index->centre.data();
    asked.largest = task.index->largest;
    asked.queries = queries;
    asked.self = task.self ? 1 : 0;
    asked.first_id = task.first_id;
    asked.first_query = task.first_query;
    asked.same_rows = task.same_rows ? 1 : 0;
    asked.keys = task.keys ? 1 : 0;
    asked.metric = static_cast<std::int32_t>(task.metric);
    asked.p = task.p;
    asked.method = static_cast<std::int32_t>(task.method);
    asked.collect = are_cut(task) ? kRadius : static_cast<std::int32_t>(task.collect);
    asked.k = task.k;
    asked.held = task.device_bytes_beside;
    asked.filter = task.filter.empty() ? nullptr : task.filter.data();
    asked.exclude = task.exclude.empty() ? nullptr : task.exclude.data();
    return asked;
  }

  /// 1 where method kdtree serves such a search, 0 where not, -1 where there is no room for the tree.
  [[nodiscard]] int in_tree(const NearestTask& task) const {
    const auto tree = task.index->tree.get(device_->number());
    Search asked = looked_at(task);
    asked.tree = on_device(tree.get());
    return device_->functions().tree_serves(device_->engine(), &asked);
  }
  /// What the device holds of a tree that was made for it.
  static const void* on_device(const kernels::Tree* tree) {
    return tree == nullptr ? nullptr : static_cast<const DeviceTree*>(tree)->on_device();
  }

  /// For direct_filter: the k-th distances of rows spread over the table, found by a search of their own and kept in
  /// the index. Of a table in device memory its first rows.
  std::shared_ptr<const kernels::KDistances> k_distances_of(const Context& ctx, const NearestTask& task) const {
    if (task.method != Method::direct_filter) return nullptr;
    const auto make = [&]() -> std::vector<double> {
      const TableView& table = task.index->table;
      const std::int64_t count = std::min<std::int64_t>(table.rows(), kKDistances);
      const std::int64_t step = table.memory() == Memory::cuda ? 1 : table.rows() / count;
      std::vector<std::int64_t> own(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) own[static_cast<std::size_t>(i)] = i * step;
      NearestTask sample = task;
      sample.self = false;
      sample.same_rows = false;
      sample.keys = false;
      sample.queries = TableView(table.data(), table.dtype(), count, table.cols(), step * table.row_stride(),
                                 table.col_stride(), table.memory());
      sample.method = Method::direct;
      sample.filter = {};
      sample.exclude = own;
      sample.k = std::min(task.k, table.rows() - 1);
      if (sample.k == 0) return {};
      std::vector<std::int64_t> ids(static_cast<std::size_t>(count * sample.k));
      std::vector<double> distances(ids.size());
      std::vector<std::int64_t> unused;
      SearchStats stats;
      kernels::NearestResult result{ids, distances, unused, unused, stats};
      try {
        search(ctx, sample, result);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_data) throw;
        return {};  // a pair of table rows may overflow where no query's does
      }
      std::vector<double> keys;
      for (std::int64_t i = 0; i < count; ++i) {
        const double distance = distances[static_cast<std::size_t>((i + 1) * sample.k - 1)];
        // Near enough: the keys steer thresholds and decide nothing.
        double key = distance;
        if (task.metric == Metric::euclidean) key = distance * distance;
        if (task.metric == Metric::minkowski) key = std::pow(distance, task.p);
        if (std::isfinite(key)) keys.push_back(key);
      }
      std::sort(keys.begin(), keys.end());
      return keys;
    };
    return task.index->k_distances.get_or_make(task.metric, task.p, task.k, make);
  }

  /// Puts the table on the device unless it is there; null where it does not fit.
  std::shared_ptr<void> take_in(const kernels::Prepared& index, const BorrowedTable& table, void* engine, Call& call,
                                Status& status) const {
    if (auto resident = resident_of(index)) return resident;
    std::vector<double> centre = index.centre;
    centre.resize(static_cast<std::size_t>(index.table.cols()));  // a sample that nobody prepared has none
    Preparation facts;
    facts.centre = centre.data();
    facts.largest = index.largest;
    void* made = nullptr;
    const HostCalls host = call.host();
    device_->functions().upload(engine, &host, &table.table(), &facts, &made, &status);
    if (made == nullptr) return nullptr;
    auto resident = device_->own(made, device_->functions().release);
    index.device.put(device_->number(), resident);
    return resident;
  }

  void run(Call& call, const Search& asked, Counters& counters, Status& status) const {
    const HostCalls host = call.host();
    device_->functions().nearest(device_->engine(), &host, &asked, &counters, &status);
  }

  std::shared_ptr<Device> device_;
};

}  // namespace

std::vector<VoteOutput> outputs_of(const kernels::VoteTask& votes, std::span<Vote> result, std::int64_t first) {
  std::vector<VoteOutput> outputs;
  for (std::size_t o = 0; o < votes.outputs.size(); ++o) {
    Vote& vote = result[o];
    double* const shares = vote.probabilities.empty() ? nullptr : vote.probabilities.data() + first * vote.class_count;
    outputs.push_back({votes.outputs[o].codes.data(), vote.class_count, vote.codes.data() + first, shares});
  }
  return outputs;
}

std::unique_ptr<const CudaNearest> make_nearest(std::shared_ptr<Device> device) {
  return std::make_unique<const DeviceNearest>(std::move(device));
}

}  // namespace vicinal::plugin

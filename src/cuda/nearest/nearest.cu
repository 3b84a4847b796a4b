// A search on the device: groups of queries against the table, which lies there (direct.cu, fused.cu) or passes through
// in tiles (stream.hpp). Method direct carries its lists from tile to tile; the fused screen answers for each tile, and
// the answers are merged (merge.cu). Lists stay on the device until they are asked for: votes are taken there.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cuda/base/session.hpp"
#include "cuda/base/stream.hpp"
#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/few.hpp"
#include "cuda/nearest/layout.hpp"
#include "cuda/nearest/merge.hpp"
#include "cuda/nearest/papers/papers.hpp"
#include "cuda/nearest/tree/tree.hpp"
#include "cuda/nearest/vote.hpp"
#include "formulas/nearest/few_queries.hpp"
#include "formulas/nearest/method_kind.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kLongestList = std::int64_t{1} << 31;  // neighbors of a query
constexpr std::int64_t kMaxRoom = 1024;                       // for neighbors of a query within a radius, at first
constexpr std::int64_t kCopied = std::int64_t{1} << 22;       // entries of lists between two looks at the cancel token
constexpr std::int64_t kMinRoom = 16;                         // less is not worth the memory

/// Neighbors from rooms of one size to where each query's begin; a block a query.
__global__ void compact_kernel(const double* keys, const std::int64_t* ids, std::int64_t room,
                               const std::int64_t* offsets, double* to_keys, std::int64_t* to_ids) {
  const std::int64_t q = blockIdx.x;
  const std::int64_t begin = offsets[q];
  for (std::int64_t i = threadIdx.x; i < offsets[q + 1] - begin; i += blockDim.x) {
    to_keys[begin + i] = keys[q * room + i];
    to_ids[begin + i] = ids[q * room + i];
  }
}

class Run {
 public:
  Run(Session& session, const Host& host, const plugin::Search& call, plugin::Counters& counters)
      : session_(session),
        engine_(session.engine),
        call_(call),
        counters_(counters),
        resident_(static_cast<const Resident*>(call.resident)),
        tree_(static_cast<const DeviceTree*>(call.tree)),
        layout_(session, call),
        queries_ready_(lies_ready(session.engine, call.queries, call.self != 0 ? "table" : "queries")) {
    relay_.host = host;
    engine_.host = {&relay_, &Relay::cancelled, &Relay::report};
    engine_.memory_limit = layout_.scratch;
    search_.self = call.self != 0 || call.same_rows != 0;
    search_.first_id = call.first_id;
    search_.metric = static_cast<Metric>(call.metric);
    search_.p = search_.root = call.p;
    if (call.keys != 0) {  // which these report
      search_.root = 1;
      if (search_.metric == Metric::euclidean) search_.metric = Metric::sqeuclidean;
    }
    if (resident_ != nullptr) {
      search_.table = resident_->rows;
      search_.facts = resident_->table_facts();
    } else if (static_cast<Method>(call.method) == Method::fused) {
      centre_ = Buffer<double>(engine_, call.table.cols);
      to_device(engine_, centre_.data(), call.centre, call.table.cols);
      double farthest = 0;
      for (std::int64_t j = 0; j < call.table.cols; ++j) farthest = std::max(farthest, std::fabs(call.centre[j]));
      search_.facts = facts_of(centre_.data(), call.table.cols, call.largest, farthest + call.largest);
    }
    counters_.distinct_rows = call.table.rows;
  }

  void run() {
    if (call_.k >= kLongestList) throw Failure{ErrorCode::invalid_argument, "k: CUDA serves less than 2^31 neighbors"};
    check_outputs();
    const Buffer<std::uint64_t> filter(engine_, call_.filter != nullptr ? (call_.table.rows + 63) / 64 : 0);
    if (call_.filter != nullptr) {
      to_device(engine_, filter.data(), call_.filter, filter.size());
      search_.filter = filter.data();
    }
    if (call_.k_distance_count > 0) {
      k_distances_ = Buffer<double>(engine_, call_.k_distance_count);
      to_device(engine_, k_distances_.data(), call_.k_distances, call_.k_distance_count);
    }
    for (std::int64_t o = 0; o < call_.output_count; ++o) {
      labels_.emplace_back(engine_, call_.table.rows);
      to_device(engine_, labels_.back().data(), call_.outputs[o].labels, call_.table.rows);
    }
    const std::int64_t m = call_.queries.rows;
    std::int64_t group = layout_.whole ? m : layout_.group;
    for (std::int64_t begin = 0; begin < m;) {
      const std::int64_t end = std::min(m, begin + group);
      relay_.from = static_cast<double>(begin) / static_cast<double>(m);
      relay_.share = static_cast<double>(end - begin) / static_cast<double>(m);
      if (search_group(begin, end)) {
        begin = end;
      } else {  // the tree cannot decide
        tree_ = nullptr;
        group = layout_.group;
      }
    }
    if (search_.not_finite == nullptr) engine_.synchronize();  // else the last group has waited
  }

 private:
  /// The caller's memory for answers, when it is the device's.
  void check_outputs() const {
    if (call_.collect != plugin::kKList || call_.output_count > 0) return;
    if (static_cast<Memory>(call_.memory) != Memory::cuda) return;
    for (const void* data : {static_cast<const void*>(call_.ids), static_cast<const void*>(call_.distances)}) {
      plugin::Table answer;
      answer.data = data;
      answer.memory = call_.memory;
      static_cast<void>(lies_ready(engine_, answer, "output"));
    }
  }

  /// False, and nothing is decided, where there are more queries than a group has, and the tree cannot decide.
  bool search_group(std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    const std::int64_t bytes = row_bytes(call_.queries);
    search_.first_query = call_.first_query - call_.first_id + begin;  // as rows are numbered here
    search_.queries = {nullptr, static_cast<DType>(call_.queries.dtype), count, call_.queries.cols};
    Buffer<std::byte> copy;
    if (call_.self != 0 && resident_ != nullptr) {
      search_.queries.data = static_cast<const std::byte*>(resident_->rows.data) + begin * bytes;
    } else if (queries_ready_) {
      search_.queries.data = static_cast<const std::byte*>(call_.queries.data) + begin * bytes;
    } else {
      copy = Buffer<std::byte>(engine_, count * bytes);
      upload_rows(session_, call_.queries, begin, end, copy.data(), engine_.stream);
      search_.queries.data = copy.data();
    }
    // Few queries are checked by a kernel of their search; the host reads what it wrote after the search.
    const bool notes = call_.self == 0 && notes_values(count);
    search_.not_finite = notes ? session_.notes.data() : nullptr;
    if (notes) std::fill_n(search_.not_finite, count, kNotChecked);
    static_assert(core::kFewQueries <= Notes::kCount);
    if (call_.self == 0 && !notes) {
      check_finite(engine_, search_.queries, call_.first_query + begin, "queries");
    }
    const Buffer<std::int64_t> exclude(engine_, call_.exclude != nullptr ? count : 0);
    if (call_.exclude != nullptr) {
      to_device(engine_, exclude.data(), call_.exclude + begin, count);
      search_.exclude = exclude.data();
    }
    if (call_.collect == plugin::kKList) {
      const bool found = find_lists(begin, count);
      if (notes) {
        engine_.synchronize();
        check_columns(search_.not_finite, count, call_.first_query + begin, "queries");
      }
      return found;
    }
    find_within(begin, count);
    return true;
  }

  /// Whether the lists of that number of queries are found from the table's rows on the device without packing them.
  [[nodiscard]] bool notes_values(std::int64_t count) const {
    if (resident_ == nullptr || tree_ != nullptr || call_.output_count > 0) return false;
    return static_cast<Method>(call_.method) == Method::direct && call_.collect == plugin::kKList &&
           few_serve(search_, count, call_.k);
  }

  bool find_lists(std::int64_t begin, std::int64_t count) {
    const std::int64_t k = call_.k;
    const bool votes = call_.output_count > 0;
    const bool in_place = !votes && static_cast<Memory>(call_.memory) == Memory::cuda;
    const Buffer<std::int64_t> own_ids(engine_, in_place ? 0 : count * k);
    const Buffer<double> own_distances(engine_, in_place ? 0 : count * k);
    const KLists lists = {k, in_place ? call_.ids + begin * k : own_ids.data(),
                          in_place ? call_.distances + begin * k : own_distances.data()};
    const bool fused = static_cast<Method>(call_.method) == Method::fused;
    if (kernels::is_of_a_paper(static_cast<Method>(call_.method)) && resident_ == nullptr) {
      throw Failure{ErrorCode::over_memory,
                    "method: it needs the table in device memory, where there is no room left for it within the limit; "
                    "direct does not"};
    }
    if (kernels::is_of_a_paper(static_cast<Method>(call_.method))) {
      PaperStats found;
      paper_k_lists(engine_,
                    {&search_, static_cast<Method>(call_.method), lists, k_distances_.data(), call_.k_distance_count},
                    found);
      counters_.survivors += found.ranked;
      counters_.selection_seconds += found.selection_seconds;
    } else if (fused && resident_ != nullptr) {
      Counters found;
      fused_k_lists(engine_, search_, lists, found);
      add(found);
    } else if (!found_in_tree([&](Counters& found) {
                 return tree_k_lists(engine_, tree_->view, search_, engine_.ablation != core::Ablation::tree_order,
                                     lists, found);
               })) {
      if (count > layout_.group) return false;
      if (resident_ != nullptr) {
        direct_k_lists(engine_, search_, lists);
      } else {
        lists_of_tiles(lists, count, fused);
      }
    }
    if (votes) {
      vote(lists, begin, count);
    } else if (!in_place) {
      for (std::int64_t at = 0; at < count * k; at += kCopied) {
        const std::int64_t part = std::min(kCopied, count * k - at);
        to_host(engine_, call_.ids + begin * k + at, lists.ids + at, part);
        to_host(engine_, call_.distances + begin * k + at, lists.distances + at, part);
        engine_.synchronize();
        engine_.host.check_cancelled();
      }
    }
    return true;
  }

  /// Of a table that is streamed: lists go on from tile to tile.
  void lists_of_tiles(const KLists& lists, std::int64_t count, bool fused) {
    const Buffer<std::int64_t> sizes(engine_, count);
    const Buffer<double> limits(engine_, count);
    DirectTask task;
    task.lists = {lists.k, lists.distances, lists.ids, sizes.data(), limits.data()};
    clear_lists(engine_, task.lists, count);
    if (fused) {
      const TileLists own(engine_, count, lists.k);
      Counters found;
      for_each_tile(search_, [&](const Engine& engine, const Search& tile) {
        merge_tile(engine, tile, task, call_.filter, own, found);
      });
      add(found);
    } else {
      for_each_tile(search_, [&](const Engine& engine, const Search& tile) {
        task.search = &tile;
        direct_pass(engine, task);
      });
    }
    finish_lists(engine_, search_.metric, search_.root, lists.distances, lists.ids, nullptr, lists.k, count);
  }

  void vote(const KLists& lists, std::int64_t begin, std::int64_t count) {
    for (std::int64_t o = 0; o < call_.output_count; ++o) {
      const plugin::VoteOutput& output = call_.outputs[o];
      const bool shares = output.probabilities != nullptr;
      const Buffer<std::int32_t> codes(engine_, count);
      const Buffer<double> probabilities(engine_, shares ? count * output.classes : 0);
      if (shares) probabilities.zero();
      vote_on_lists(engine_, lists.ids, lists.distances, count, lists.k, call_.weights != 0,
                    {labels_[static_cast<std::size_t>(o)].data(), output.classes, codes.data(), probabilities.data()});
      to_host(engine_, output.codes + begin, codes.data(), count);
      if (shares) {
        to_host(engine_, output.probabilities + begin * output.classes, probabilities.data(), count * output.classes);
      }
    }
    engine_.synchronize();
  }

  /// Count, and radius: the first pass counts, and keeps what it finds where there is room for the same number of
  /// neighbors of each query. Where that was too little, or is too much for the host, a second pass has room for just
  /// so many as there are.
  void find_within(std::int64_t begin, std::int64_t count) {
    const Buffer<unsigned long long> found(engine_, count);
    found.zero();
    const std::uint64_t limit = engine_.memory_limit;
    std::int64_t room = 0;
    if (call_.collect == plugin::kRadius) {
      room = std::min(kMaxRoom, static_cast<std::int64_t>(limit / 4) / (count * 16));
      if (room < kMinRoom) room = 0;
    }
    Buffer<double> keys(engine_, room * count);
    Buffer<std::int64_t> ids(engine_, room * count);
    DirectTask task;
    task.largest_key = call_.largest_key;
    task.counts = found.data();
    task.keys = keys.data();
    task.ids = ids.data();
    task.room = room;
    engine_.memory_limit = limit - keys.bytes() - ids.bytes();
    pass_within(task, search_);
    engine_.memory_limit = limit;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(count));
    static_assert(sizeof(std::int64_t) == sizeof(unsigned long long));
    check(cudaMemcpyAsync(counts.data(), found.data(), found.bytes(), cudaMemcpyDeviceToHost, engine_.stream),
          "copy from the device");
    engine_.synchronize();
    if (call_.collect == plugin::kCount) {
      std::copy(counts.begin(), counts.end(), call_.counts + begin);
      return;
    }
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (room > 0 && all <= call_.most_neighbors && *std::max_element(counts.begin(), counts.end()) <= room) {
      return hand_over(counts, [&](const Within& within) {
        compact_kernel<<<static_cast<unsigned>(count), 64, 0, engine_.stream>>>(
            keys.data(), ids.data(), room, within.offsets.data(), within.keys.data(), within.ids.data());
        check_launch("gather neighbors");
      });
    }
    keys = {};
    ids = {};
    const auto fitting = static_cast<std::int64_t>(limit / 2 / 16);
    const std::int64_t most = std::min(fitting, call_.most_neighbors);
    for (std::int64_t first = 0; first < count;) {
      std::int64_t last = first;
      std::int64_t total = 0;
      while (last < count && total + counts[static_cast<std::size_t>(last)] <= most) {
        total += counts[static_cast<std::size_t>(last++)];
      }
      if (last == first) {
        const std::int64_t alone = counts[static_cast<std::size_t>(last++)];
        if (alone > fitting) refuse_memory(static_cast<std::uint64_t>(alone) * 32, limit);
      }
      find_again({counts.data() + first, static_cast<std::size_t>(last - first)}, first);
      first = last;
    }
  }

  /// Neighbors within a radius, those of each query after each other.
  struct Within {
    Buffer<std::int64_t> offsets;  ///< [queries + 1]
    Buffer<double> keys;
    Buffer<std::int64_t> ids;
  };

  /// Asks the host for room for so many neighbors of each query, has find(within) find them, in no order, and hands
  /// them over in order.
  template <class Find>
  void hand_over(std::span<const std::int64_t> counts, Find find) {
    const auto queries = static_cast<std::int64_t>(counts.size());
    std::int64_t* host_ids = nullptr;
    double* host_distances = nullptr;
    if (call_.make_room(call_.user, counts.data(), queries, &host_ids, &host_distances) != 0) throw HostFailure{};
    std::vector<std::int64_t> offsets(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
    const std::int64_t total = offsets.back();
    if (total == 0) return;
    const Within within = {Buffer<std::int64_t>(engine_, queries + 1), Buffer<double>(engine_, total),
                           Buffer<std::int64_t>(engine_, total)};
    to_device(engine_, within.offsets.data(), offsets.data(), queries + 1);
    find(within);
    finish_lists(engine_, search_.metric, search_.root, within.keys.data(), within.ids.data(), within.offsets.data(), 0,
                 queries);
    to_host(engine_, host_ids, within.ids.data(), total);
    to_host(engine_, host_distances, within.keys.data(), total);
    engine_.synchronize();
  }

  /// A second pass for some queries of the group.
  void find_again(std::span<const std::int64_t> counts, std::int64_t first) {
    const auto queries = static_cast<std::int64_t>(counts.size());
    Search part = search_;
    part.queries.n = queries;
    part.queries.data = static_cast<const std::byte*>(search_.queries.data) + first * row_bytes(call_.queries);
    part.first_query += first;
    if (part.exclude != nullptr) part.exclude += first;
    hand_over(counts, [&](const Within& within) {
      const Buffer<unsigned long long> found(engine_, queries);
      found.zero();
      DirectTask task;
      task.largest_key = call_.largest_key;
      task.counts = found.data();
      task.keys = within.keys.data();
      task.ids = within.ids.data();
      task.offsets = within.offsets.data();
      const std::uint64_t limit = engine_.memory_limit;
      engine_.memory_limit = limit / 2;
      pass_within(task, part);
      engine_.memory_limit = limit;
    });
  }

  void add(const Counters& found) {
    counters_.survivors += found.survivors;
    counters_.escalated += found.escalated;
    counters_.uncertified += found.uncertified;
  }

  /// Whether there is a tree and search(counters) decided everything in it. Else every pair must be looked at.
  template <class InTree>
  bool found_in_tree(InTree search) {
    if (tree_ == nullptr) return false;
    Counters found;
    if (!search(found)) return false;
    add(found);
    return true;
  }

  /// A pass that counts, and keeps where there is room what lies within the radius: in the tree, or over the table.
  void pass_within(DirectTask task, const Search& search) {
    task.search = &search;
    const bool done = found_in_tree([&](Counters& found) {
      return tree_pass(engine_, tree_->view, task, engine_.ablation != core::Ablation::tree_order, found);
    });
    if (done) return;
    const std::size_t bytes = static_cast<std::size_t>(search.queries.n) * sizeof *task.counts;
    if (tree_ != nullptr) check(cudaMemsetAsync(task.counts, 0, bytes, engine_.stream), "clear results");
    const bool fused = static_cast<Method>(call_.method) == Method::fused;
    Counters found;
    for_each_tile(search, [&](const Engine& engine, const Search& tile) {
      if (fused) return fused_within(engine, tile, task, found);
      task.search = &tile;
      direct_pass(engine, task);
    });
    add(found);
  }

  /// Calls visit(engine, search) with the whole table, or with each tile of one that is streamed.
  template <class Visit>
  void for_each_tile(const Search& search, Visit visit) {
    if (resident_ != nullptr) return visit(engine_, search);
    TileStream(session_, relay_, call_.table, layout_.tile).pass(engine_, search, visit);
  }

  Session& session_;
  Engine engine_;
  const plugin::Search& call_;
  plugin::Counters& counters_;
  const Resident* resident_;
  const DeviceTree* tree_;
  Layout layout_;
  bool queries_ready_;
  Relay relay_;
  Search search_;
  Buffer<double> centre_;  // of a table that is streamed
  std::vector<Buffer<std::int32_t>> labels_;
  Buffer<double> k_distances_;
};

}  // namespace

void nearest(Session& session, const Host& host, const plugin::Search& search, plugin::Counters& counters) {
  Run(session, host, search, counters).run();
}

}  // namespace vicinal::cuda

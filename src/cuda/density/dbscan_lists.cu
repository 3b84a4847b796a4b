// The searches of DBSCAN through lists of neighbors, for every metric and any number of columns: the passes of a radius
// search (cuda/nearest/direct.hpp) count the neighbors of all rows first. Then as many queries at a time as the room
// for lists holds are searched again, and their lists are used up at once: room for the neighbors of one row is enough,
// so that memory is O(n) whatever the radius is.
//   core    by the counts; with weights each list is added up, digit by digit (formulas/density/weight_digits.hpp).
//   join    lists of core rows, of core rows alone: a thread an entry. A few rows first: where they join all, no others
//           search.
//   border  lists of the other rows that have neighbors.
#include <algorithm>
#include <memory>
#include <vector>

#include "cuda/base/memory.hpp"
#include "cuda/base/stream.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/density/dbscan.hpp"
#include "cuda/density/forest.cuh"
#include "cuda/nearest/direct.hpp"

namespace vicinal::cuda::dbscan {
namespace {

constexpr std::int64_t kMostQueries = std::int64_t{1} << 18;  // of a pass that lists
constexpr std::int64_t kMostCounted = std::int64_t{1} << 20;  // of a pass that counts
constexpr std::int64_t kGathered = std::int64_t{1} << 28;     // bytes of queries
constexpr std::int64_t kEntries = std::int64_t{1} << 26;      // of lists, where rows are no more
constexpr std::int64_t kFewRows = 8192;                       // the lists of all of them have no more
constexpr std::uint64_t kEntryBytes = sizeof(double) + sizeof(std::int64_t);
constexpr std::int64_t kFirstRows = 64;

/// What lists and passes take of device memory.
struct ListSizes {
  std::int64_t queries = 0;  ///< of a pass that lists
  std::int64_t room = 0;     ///< entries of lists
  std::uint64_t fixed = 0;   ///< bytes of all but the passes
  std::uint64_t passes = 0;  ///< bytes that those may take

  ListSizes(const plugin::Search& search, std::uint64_t left) {
    const std::int64_t n = search.table.rows;
    queries = std::clamp<std::int64_t>(kGathered / row_bytes(search.table), 64, kMostQueries);
    queries = std::min(queries, n);
    const std::uint64_t filter = static_cast<std::uint64_t>(n + 63) / 64 * sizeof(std::uint64_t);
    const std::uint64_t query = static_cast<std::uint64_t>(row_bytes(search.table)) + 3 * sizeof(std::int64_t);
    fixed = filter + static_cast<std::uint64_t>(n) * sizeof(unsigned long long) +
            static_cast<std::uint64_t>(queries) * query + 4096;
    const std::uint64_t half = (left - std::min(left, fixed)) / 2;
    const std::int64_t most = n < kFewRows ? n * n : std::max(n, kEntries);
    room = std::min(most, static_cast<std::int64_t>(half / kEntryBytes));
    if (room < n) refuse_memory(fixed + 2 * static_cast<std::uint64_t>(n) * kEntryBytes, left);
    fixed += static_cast<std::uint64_t>(room) * kEntryBytes;
    passes = left - fixed;
  }
};

/// Whether the fused screen makes the passes.
bool takes_screen(const Engine& engine, const plugin::Search& search, const ListSizes& sizes) {
  if (static_cast<Method>(search.method) != Method::fused) return false;
  Engine within = engine;
  within.memory_limit = sizes.passes;
  return fused_serves(within, static_cast<Metric>(search.metric), search.table.rows, search.table.cols, 0);
}

__global__ void tell_core_kernel(const unsigned long long* counts, std::int64_t rows, std::int64_t min_samples,
                                 std::uint8_t* core) {
  const std::int64_t row = own_number();
  if (row < rows) core[row] = static_cast<std::int64_t>(counts[row]) + 1 >= min_samples ? 1 : 0;
}

/// Flags of rows as bits, a warp 32 of them.
__global__ void pack_bits_kernel(const std::uint8_t* flags, std::int64_t rows, std::uint32_t* bits) {
  const std::int64_t row = own_number();
  const unsigned word = __ballot_sync(kWholeWarp, row < rows && flags[row] != 0);
  if (threadIdx.x % 32 == 0 && row < (rows + 63) / 64 * 64) bits[row / 32] = word;
}

__global__ void gather_kernel(const char* from, const std::int64_t* numbers, std::int64_t bytes, char* to) {
  const char* const row = from + numbers[blockIdx.x] * bytes;
  for (std::int64_t i = threadIdx.x; i < bytes; i += blockDim.x) to[blockIdx.x * bytes + i] = row[i];
}

/// Lists of some queries: those of query q begin at offsets[q], and are found[q].
struct Lists {
  const std::int64_t* numbers;  ///< [queries] rows that they are
  const std::int64_t* offsets;
  const unsigned long long* found;
  const std::int64_t* ids;
};

/// Whether the rows around each query weigh enough: a block a query.
__global__ void __launch_bounds__(128)
    weigh_kernel(const __grid_constant__ Lists lists, const double* weights, const std::int64_t* least, int digits,
                 int base, int bits, std::uint8_t* core_rows) {
  __shared__ unsigned long long sum;
  const std::int64_t row = lists.numbers[blockIdx.x];
  const std::int64_t begin = lists.offsets[blockIdx.x];
  const auto size = static_cast<std::int64_t>(lists.found[blockIdx.x]);
  core::DigitSum all;
  for (int number = 0; number < digits; ++number) {
    if (threadIdx.x == 0) sum = static_cast<unsigned long long>(core::weight_digit(weights[row], base, bits, number));
    __syncthreads();
    std::int64_t mine = 0;
    for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      mine += core::weight_digit(weights[lists.ids[begin + i]], base, bits, number);
    }
    atomicAdd(&sum, static_cast<unsigned long long>(mine));  // modulo 2^64: of either sign
    __syncthreads();
    all.take(static_cast<std::int64_t>(sum), least[number], bits);
    __syncthreads();
  }
  if (threadIdx.x == 0) core_rows[row] = all.is_enough() ? 1 : 0;
}

/// Joins each query to the core rows of its list; both are core rows.
__global__ void __launch_bounds__(128) join_lists_kernel(const __grid_constant__ Lists lists, const std::uint8_t* core,
                                                         unsigned* parent, unsigned long long* unions) {
  const auto row = static_cast<unsigned>(lists.numbers[blockIdx.x]);
  const std::int64_t begin = lists.offsets[blockIdx.x];
  const auto size = static_cast<std::int64_t>(lists.found[blockIdx.x]);
  unsigned long long joined = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    const auto other = static_cast<unsigned>(lists.ids[begin + i]);
    if (core[other] != 0 && unite(parent, row, other)) ++joined;
  }
  if (joined > 0) atomicAdd(unions, joined);
}

/// The smallest number of a core row in each query's list.
__global__ void __launch_bounds__(128)
    number_lists_kernel(const __grid_constant__ Lists lists, const std::uint8_t* core, unsigned* labels) {
  __shared__ unsigned least;
  if (threadIdx.x == 0) least = kNone;
  __syncthreads();
  const std::int64_t row = lists.numbers[blockIdx.x];
  const std::int64_t begin = lists.offsets[blockIdx.x];
  const auto size = static_cast<std::int64_t>(lists.found[blockIdx.x]);
  unsigned mine = kNone;
  for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) {
    const std::int64_t other = lists.ids[begin + i];
    if (core[other] != 0 && labels[other] < mine) mine = labels[other];
  }
  if (mine != kNone) atomicMin(&least, mine);
  __syncthreads();
  if (threadIdx.x == 0) labels[row] = least;
}

class ListSearches final : public Searches {
 public:
  ListSearches(const Engine& engine, const Resident& table, const plugin::Search& search, const Rule& rule,
               PlacedRows& rows, plugin::Counters& counters)
      : engine_(engine),
        sizes_(search, engine.memory_limit),
        table_(table),
        rule_(rule),
        rows_(rows),
        counters_(counters),
        is_fused_(takes_screen(engine, search, sizes_)),
        found_(engine, rows.count),
        filter_(engine, (rows.count + 63) / 64),
        gathered_(engine, sizes_.queries * table.rows.d * size_of(table.rows.dtype)),
        numbers_(engine, sizes_.queries),
        offsets_(engine, sizes_.queries + 1),
        counts_(engine, sizes_.queries),
        keys_(engine, sizes_.room),
        ids_(engine, sizes_.room) {
    relay_.host = engine.host;
    engine_.host = {&relay_, &Relay::cancelled, &Relay::report};
    engine_.memory_limit = sizes_.passes;
    search_.table = table.rows;
    search_.facts = table.table_facts();
    search_.self = true;
    search_.metric = static_cast<Metric>(search.metric);
    search_.p = search_.root = search.p;
  }

  void find_core_rows() override {
    count_neighbors();
    const std::int64_t n = rows_.count;
    tell_core_kernel<<<blocks_for(n, kThreads), kThreads, 0, engine_.stream>>>(found_.data(), n, rule_.min_samples,
                                                                               rows_.core.data());
    check_launch("tell core rows");
    if (!rule_.has_weights()) return;
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    for (std::int64_t row = 0; row < n; ++row) all[static_cast<std::size_t>(row)] = row;
    const core::WeightDigits& digits = rule_.digits;
    for_each_list(all, nullptr, [&](const Lists& lists, unsigned queries) {
      weigh_kernel<<<queries, 128, 0, engine_.stream>>>(lists, rule_.weights.data(), rule_.least.data(),
                                                        static_cast<int>(digits.least.size()), digits.base, digits.bits,
                                                        rows_.core.data());
      check_launch("weigh neighbors");
      return true;
    });
  }

  void join_core_rows() override {
    const std::vector<std::int64_t> all = rows_that_are(1);
    const auto count = static_cast<std::int64_t>(all.size());
    if (count < 2) return;
    const Buffer<unsigned long long> unions(engine_, 1);
    unions.zero();
    const std::uint64_t* const filter = filter_of_core_rows();
    const auto join = [&](const Lists& lists, unsigned queries) {
      join_lists_kernel<<<queries, 128, 0, engine_.stream>>>(lists, rows_.core.data(), rows_.parent.data(),
                                                             unions.data());
      check_launch("join core rows");
      unsigned long long joined = 0;
      to_host(engine_, &joined, unions.data(), 1);
      engine_.synchronize();
      return static_cast<std::int64_t>(joined) < count - 1;
    };
    std::vector<std::int64_t> first;
    for (std::int64_t i = 0; i < std::min(count, kFirstRows); ++i) {
      first.push_back(all[static_cast<std::size_t>(i * count / std::min(count, kFirstRows))]);
    }
    if (for_each_list(first, filter, join)) for_each_list(all, filter, join);
  }

  void label_border_rows() override {
    const std::vector<std::int64_t> rest = rows_that_are(0);
    const std::uint64_t* const filter = filter_of_core_rows();
    for_each_list(rest, filter, [&](const Lists& lists, unsigned queries) {
      number_lists_kernel<<<queries, 128, 0, engine_.stream>>>(lists, rows_.core.data(), rows_.labels.data());
      check_launch("number border rows");
      return true;
    });
  }

 private:
  void pass(const Search& search, DirectTask& task) {
    Counters found;
    if (is_fused_) {
      fused_within(engine_, search, task, found);
    } else {
      task.search = &search;
      direct_pass(engine_, task);
    }
    counters_.survivors += found.survivors;
    counters_.escalated += found.escalated;
    counters_.uncertified += found.uncertified;
  }

  /// How many other rows are within the radius of each.
  void count_neighbors() {
    found_.zero();
    const std::int64_t n = rows_.count;
    const std::int64_t bytes = table_.rows.d * size_of(table_.rows.dtype);
    for (std::int64_t begin = 0; begin < n; begin += kMostCounted) {
      Search part = search_;
      part.first_query = begin;
      part.queries = table_.rows;
      part.queries.data = static_cast<const std::byte*>(table_.rows.data) + begin * bytes;
      part.queries.n = std::min(kMostCounted, n - begin);
      relay_.from = static_cast<double>(begin) / static_cast<double>(n);
      relay_.share = static_cast<double>(part.queries.n) / static_cast<double>(n);
      DirectTask task;
      task.largest_key = rule_.limit;
      task.counts = found_.data() + begin;
      pass(part, task);
    }
    host_counts_.resize(static_cast<std::size_t>(n));
    to_host(engine_, host_counts_.data(), found_.data(), n);
    engine_.synchronize();
  }

  /// Rows whose flag is that and that have neighbors: others have no list.
  std::vector<std::int64_t> rows_that_are(std::uint8_t core) {
    std::vector<std::uint8_t> flags(static_cast<std::size_t>(rows_.count));
    to_host(engine_, flags.data(), rows_.core.data(), rows_.count);
    engine_.synchronize();
    all_are_core_ = std::find(flags.begin(), flags.end(), 0) == flags.end();
    std::vector<std::int64_t> rows;
    for (std::size_t row = 0; row < flags.size(); ++row) {
      if (flags[row] == core && host_counts_[row] > 0) rows.push_back(static_cast<std::int64_t>(row));
    }
    return rows;
  }

  /// After rows_that_are. Null where all rows are core rows.
  const std::uint64_t* filter_of_core_rows() {
    const std::int64_t n = rows_.count;
    if (all_are_core_) return nullptr;
    const std::int64_t padded = (n + 63) / 64 * 64;
    pack_bits_kernel<<<blocks_for(padded, kThreads), kThreads, 0, engine_.stream>>>(
        rows_.core.data(), n, reinterpret_cast<std::uint32_t*>(filter_.data()));
    check_launch("pack a filter");
    return filter_.data();
  }

  /// Searches the rows, as many at a time as have room, and calls use(lists, queries) until that is false. Returns
  /// whether it never was.
  template <class Use>
  bool for_each_list(const std::vector<std::int64_t>& rows, const std::uint64_t* filter, const Use& use) {
    const std::int64_t bytes = table_.rows.d * size_of(table_.rows.dtype);
    const auto all = static_cast<std::int64_t>(rows.size());
    std::vector<std::int64_t> offsets;
    for (std::int64_t begin = 0, end = 0; begin < all; begin = end) {
      offsets.assign(1, 0);
      while (end < all && end - begin < sizes_.queries) {
        const auto own =
            static_cast<std::int64_t>(host_counts_[static_cast<std::size_t>(rows[static_cast<std::size_t>(end)])]);
        if (offsets.back() + own > sizes_.room) break;
        offsets.push_back(offsets.back() + own);
        ++end;
      }
      const std::int64_t count = end - begin;  // at least one: no row has more neighbors than there is room for
      to_device(engine_, numbers_.data(), rows.data() + begin, count);
      to_device(engine_, offsets_.data(), offsets.data(), count + 1);
      check(cudaMemsetAsync(counts_.data(), 0, static_cast<std::size_t>(count) * sizeof(unsigned long long),
                            engine_.stream),
            "clear device memory");
      gather_kernel<<<static_cast<unsigned>(count), 128, 0, engine_.stream>>>(
          static_cast<const char*>(table_.rows.data), numbers_.data(), bytes, gathered_.data());
      check_launch("gather queries");
      Search part = search_;
      part.queries = {gathered_.data(), table_.rows.dtype, count, table_.rows.d};
      part.numbers = numbers_.data();
      part.filter = filter;
      relay_.from = static_cast<double>(begin) / static_cast<double>(all);
      relay_.share = static_cast<double>(count) / static_cast<double>(all);
      DirectTask task;
      task.largest_key = rule_.limit;
      task.counts = counts_.data();
      task.keys = keys_.data();
      task.ids = ids_.data();
      task.offsets = offsets_.data();
      pass(part, task);
      const bool goes_on =
          use({numbers_.data(), offsets_.data(), counts_.data(), ids_.data()}, static_cast<unsigned>(count));
      engine_.synchronize();  // before `offsets` is made anew
      if (!goes_on) return false;
    }
    return true;
  }

  Engine engine_;
  ListSizes sizes_;
  const Resident& table_;
  const Rule& rule_;
  PlacedRows& rows_;
  plugin::Counters& counters_;
  bool is_fused_;
  Relay relay_;
  Search search_;
  Buffer<unsigned long long> found_;  // [rows] neighbors
  Buffer<std::uint64_t> filter_;
  Buffer<char> gathered_;
  Buffer<std::int64_t> numbers_;  // [queries]
  Buffer<std::int64_t> offsets_;  // [queries + 1]
  Buffer<unsigned long long> counts_;
  Buffer<double> keys_;
  Buffer<std::int64_t> ids_;
  std::vector<unsigned long long> host_counts_;
  bool all_are_core_ = false;
};

}  // namespace

std::uint64_t list_bytes(const Engine& engine, const plugin::Search& search, std::uint64_t left) {
  const ListSizes sizes(search, left);
  cuda::Search shape;
  shape.metric = static_cast<Metric>(search.metric);
  shape.table = {nullptr, static_cast<DType>(search.table.dtype), search.table.rows, search.table.cols};
  shape.queries = shape.table;
  const std::int64_t most = std::min(search.table.rows, kMostCounted);
  if (takes_screen(engine, search, sizes)) {
    return sizes.fixed + fused_bytes(engine, shape, most, 0, sizes.passes);
  }
  DirectTask task;
  task.search = &shape;
  std::uint64_t passes = direct_bytes(task, search.table.rows, most, sizes.passes);
  const std::int64_t rest = search.table.rows % kMostCounted;
  for (const std::int64_t queries : {sizes.queries, rest, std::int64_t{64}, std::int64_t{1}}) {
    if (queries > 0) passes = std::max(passes, direct_bytes(task, search.table.rows, queries, sizes.passes));
  }
  return sizes.fixed + passes;
}

std::unique_ptr<Searches> list_neighbors(const Engine& engine, const Resident& table, const plugin::Search& search,
                                         const Rule& rule, PlacedRows& rows, plugin::Counters& counters) {
  return std::make_unique<ListSearches>(engine, table, search, rule, rows, counters);
}

}  // namespace vicinal::cuda::dbscan

// See lof.hpp. Eight lanes share a row and its neighborhood, each with one of the accumulators of the contract's sums
// (formulas/lof/outlier.hpp); a range of k gives a warp to a row and a lane to a k. Lists are read twice, what is
// gathered of neighbors (8 bytes a row) lies in the cache: O(n k). Reversed neighborhoods (inflo) are the entries
// sorted by id.
#include <algorithm>
#include <chrono>
#include <vector>

#include "cuda/base/memory.hpp"
#include "cuda/base/order.hpp"
#include "cuda/base/warp.cuh"
#include "cuda/lof/lof.hpp"
#include "cuda/lof/neighbor_pairs.hpp"
#include "formulas/lof/outlier.hpp"

namespace vicinal::cuda::lof {
namespace {

using core::Neighborhood;
using core::Neighborhoods;

constexpr auto kLanes = static_cast<int>(core::kLanes);

/// The row of the calling group of eight lanes.
__device__ std::int64_t row_of_eight() {
  return (own_number()) / kLanes;
}
unsigned blocks_of_eights(std::int64_t rows) {
  return blocks_for(rows, kThreads / kLanes);
}

__global__ void k_distance_kernel(Neighborhoods near, double* k_distances, unsigned long long* copied) {
  const std::int64_t p = own_number();
  double distance = 1;
  if (p < near.rows) {
    distance = Neighborhood(near, p).k_distance();
    if (k_distances != nullptr) k_distances[p] = distance;
  }
  const int zeros = __popc(__ballot_sync(kWholeWarp, distance == 0));
  if (threadIdx.x % 32 == 0 && zeros > 0) atomicAdd(copied, static_cast<unsigned long long>(zeros));
}

__global__ void local_kernel(OutlierScore score, Duplicates duplicates, Neighborhoods near, const double* k_distances,
                             double* local) {
  const std::int64_t p = row_of_eight();
  if (p >= near.rows) return;
  const double value = core::local_value(score, duplicates, Neighborhood(near, p), k_distances);
  if (threadIdx.x % kLanes == 0) local[p] = value;
}

__global__ void score_kernel(OutlierScore score, Duplicates duplicates, Neighborhoods near, const double* own,
                             const double* local, double* scores) {
  const std::int64_t p = row_of_eight();
  if (p >= near.rows) return;
  const double value = core::row_score(score, duplicates, Neighborhood(near, p), own != nullptr ? own[p] : 0, local);
  if (threadIdx.x % kLanes == 0) scores[p] = value;
}

/// The largest finite density of each k, as bits: those of positive numbers are in the numbers' order.
__global__ void largest_density_kernel(const double* densities, std::int64_t rows, std::int64_t ks,
                                       unsigned long long* largest) {
  const std::int64_t thread = own_number();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x / ks;
  if (thread >= step * ks) return;
  double most = 0;
  for (std::int64_t p = thread / ks; p < rows; p += step) {
    const double density = densities[p * ks + thread % ks];
    if (!isinf(density) && density > most) most = density;
  }
  atomicMax(largest + thread % ks, static_cast<unsigned long long>(__double_as_longlong(most)));
}

__global__ void cap_kernel(double* densities, std::int64_t count, std::int64_t ks, const double* caps) {
  const std::int64_t i = own_number();
  if (i < count && isinf(densities[i])) densities[i] = caps[i % ks];
}

/// Entries of k lists: whose neighborhoods an id is in.
__global__ void reverse_kernel(Neighborhoods near, unsigned long long* ids, std::uint32_t* rows) {
  const std::int64_t i = own_number();
  if (i >= near.rows * near.k) return;
  const std::int64_t p = i / near.k;
  ids[i] = static_cast<unsigned long long>(near.ids[p * near.stride + i % near.k]);
  rows[i] = static_cast<std::uint32_t>(p);
}

/// The same of lists of their own lengths, of which `near.offsets` are those of their entries.
__global__ void reverse_lists_kernel(Neighborhoods near, unsigned long long* ids, std::uint32_t* rows) {
  const std::int64_t p = row_of_eight();
  if (p >= near.rows) return;
  for (std::int64_t i = near.offsets[p] + threadIdx.x % kLanes; i < near.offsets[p + 1]; i += kLanes) {
    ids[i] = static_cast<unsigned long long>(near.ids[i]);
    rows[i] = static_cast<std::uint32_t>(p);
  }
}

/// The first of `count` ascending keys that is not below `key`.
__device__ std::int64_t lower_bound(const unsigned long long* keys, std::int64_t count, unsigned long long key) {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    if (keys[begin + half] < key) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}

__global__ void inflo_kernel(Duplicates duplicates, Neighborhoods near, const double* local,
                             const unsigned long long* ids, const std::uint32_t* rows, std::int64_t entries,
                             double* scores) {
  const std::int64_t p = row_of_eight();
  if (p >= near.rows) return;
  const Neighborhood list(near, p);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  double a = 0;
  for (std::int64_t i = lane; i < list.size; i += kLanes) a += local[list.ids[i]];
  std::int64_t column = list.size;
  for (std::int64_t at = lower_bound(ids, entries, static_cast<unsigned long long>(p));
       at < entries && ids[at] == static_cast<unsigned long long>(p); ++at) {
    const std::int64_t other = rows[at];
    bool known = false;
    for (std::int64_t i = lane; i < list.size && !known; i += kLanes) known = list.ids[i] == other;
    if (__any_sync(core::mask_of_eight(), known)) continue;
    if (column % kLanes == lane) a += local[other];
    ++column;
  }
  const double mean = core::sum_of_eight(a) / static_cast<double>(column);
  if (lane == 0) scores[p] = core::density_ratio(duplicates, mean, local[p]);
}

/// Of a range: for each k, lane by lane, the mean of term(i, j) over the first k neighbors, handed to out(j, mean).
template <class Term, class Out>
__device__ void means_by_k(const Neighborhood& list, std::int64_t k_from, std::int64_t ks, const Term& term,
                           const Out& out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t first = 0; first < ks; first += 32) {
    const std::int64_t j = first + lane;
    const std::int64_t k = j < ks ? k_from + j : 0;
    double a[kLanes] = {};
    const std::int64_t longest = k_from + (first + 32 < ks ? first + 32 : ks) - 1;
    for (std::int64_t begin = 0; begin < longest; begin += kLanes) {
#pragma unroll
      for (int l = 0; l < kLanes; ++l) {
        if (begin + l < k) a[l] += term(begin + l, j);
      }
    }
    out(j, core::sum_of_lanes(a) / static_cast<double>(k));
  }
}

/// The k-distances of row o, ks of them, begin at known[o * stride].
__global__ void range_local_kernel(Neighborhoods near, std::int64_t k_from, std::int64_t ks, double added,
                                   const double* known, std::int64_t stride, double* local) {
  const std::int64_t p = (own_number()) / 32;
  if (p >= near.rows) return;
  const Neighborhood list(near, p);
  const auto reach = [&](std::int64_t i, std::int64_t j) {
    return core::larger(list.distances[i], known[list.ids[i] * stride + j]);
  };
  means_by_k(list, k_from, ks, reach, [&](std::int64_t j, double mean) {
    if (j < ks) local[p * ks + j] = 1 / (mean + added);
  });
}

__global__ void range_score_kernel(Neighborhoods near, std::int64_t k_from, std::int64_t ks, Duplicates duplicates,
                                   AcrossK across, const double* own, const double* local, double* scores) {
  const std::int64_t p = (own_number()) / 32;
  if (p >= near.rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Neighborhood list(near, p);
  double joined = across == AcrossK::min ? INFINITY : 0;  // of mean: the accumulator lane % 8
  const auto density = [&](std::int64_t i, std::int64_t j) { return local[list.ids[i] * ks + j]; };
  means_by_k(list, k_from, ks, density, [&](std::int64_t j, double mean) {
    const double score = j < ks ? core::density_ratio(duplicates, mean, own[p * ks + j]) : 0;
    if (across == AcrossK::mean) {
      for (int from = lane % kLanes; from < 32; from += kLanes) {
        const double other = __shfl_sync(kWholeWarp, score, from);
        if (j - lane + from < ks) joined += other;
      }
    } else if (j < ks) {
      // What is no number stays: the host refuses it.
      if (isnan(score) || (across == AcrossK::max ? score > joined : score < joined)) joined = score;
    }
  });
  if (across == AcrossK::mean) {
    joined = core::sum_of_eight(joined) / static_cast<double>(ks);
  } else {
    for (int step = 16; step > 0; step /= 2) {
      const double other = __shfl_xor_sync(kWholeWarp, joined, step);
      if (isnan(other) || (across == AcrossK::max ? other > joined : other < joined)) joined = other;
    }
  }
  if (lane == 0) scores[p] = joined;
}

/// Lists of a search, to memory of the device. What is held counts as resident meanwhile.
void find_lists(Session& session, const Host& host, plugin::Search search, std::uint64_t held, std::int64_t* ids,
                double* distances, plugin::Counters& counters) {
  search.ids = ids;
  search.distances = distances;
  search.memory = static_cast<std::int32_t>(Memory::cuda);
  session.resident_bytes += held;
  try {
    nearest(session, host, search, counters);
  } catch (...) {
    session.resident_bytes -= held;
    throw;
  }
  session.resident_bytes -= held;
}

/// The k-distances [rows, ks] of a range, which are entries of the lists, to the host.
void fetch_range(const Engine& engine, const Neighborhoods& near, std::int64_t k_from, std::int64_t ks, double* to) {
  check(cudaMemcpy2DAsync(to, static_cast<std::size_t>(ks) * sizeof(double), near.distances + (k_from - 1),
                          static_cast<std::size_t>(near.stride) * sizeof(double),
                          static_cast<std::size_t>(ks) * sizeof(double), static_cast<std::size_t>(near.rows),
                          cudaMemcpyDeviceToHost, engine.stream),
        "copy from the device");
}

class Run {
 public:
  Run(Session& session, const Host& host, const plugin::Search* search, plugin::Outliers& task,
      plugin::Counters& counters)
      : session_(session),
        host_(host),
        search_(search),
        task_(task),
        counters_(counters),
        engine_(session.engine),
        score_(static_cast<OutlierScore>(task.score)),
        duplicates_(static_cast<Duplicates>(task.duplicates)) {}

  void run() {
    const std::uint64_t held = outlier_bytes(session_, task_);
    take_neighborhoods(held);
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t rows = task_.rows;
    const Buffer<unsigned long long> copied(engine_, 1);
    copied.zero();
    scores_ = Buffer<double>(engine_, rows);
    if (task_.k_from > 0) {
      k_distance_kernel<<<blocks_for(rows, kThreads), kThreads, 0, engine_.stream>>>(near_, nullptr, copied.data());
      check_launch("k-distances");
      score_range();
    } else {
      k_distances_ = Buffer<double>(engine_, rows);
      k_distance_kernel<<<blocks_for(rows, kThreads), kThreads, 0, engine_.stream>>>(near_, k_distances_.data(),
                                                                                     copied.data());
      check_launch("k-distances");
      score_one_k();
    }
    host_.check_cancelled();
    hand_over(copied);
    task_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  /// Lists of the host's go up; a search's are found where they will lie.
  void take_neighborhoods(std::uint64_t held) {
    const std::int64_t entries = task_.ids != nullptr ? task_.entries : task_.rows * task_.stride;
    ids_ = Buffer<std::int64_t>(engine_, entries);
    distances_ = Buffer<double>(engine_, entries);
    near_ = {ids_.data(), distances_.data(), nullptr, nullptr, task_.rows, task_.k, task_.stride};
    if (task_.ids != nullptr) {
      to_device(engine_, ids_.data(), task_.ids, entries);
      to_device(engine_, distances_.data(), task_.distances, entries);
      if (task_.offsets != nullptr) near_.offsets = uploaded(offsets_, task_.offsets, task_.rows + 1);
      if (task_.weights != nullptr) near_.weights = uploaded(weights_, task_.weights, entries);
      return;
    }
    find_lists(session_, host_, *search_, held, ids_.data(), distances_.data(), counters_);
  }

  template <class T>
  const T* uploaded(Buffer<T>& to, const T* from, std::int64_t count) {
    to = Buffer<T>(engine_, count);
    to_device(engine_, to.data(), from, count);
    return to.data();
  }

  const Rows* resident_rows() const {
    if (search_ == nullptr || search_->resident == nullptr) return nullptr;
    return &static_cast<const Resident*>(search_->resident)->rows;
  }

  void score_one_k() {
    if (score_ == OutlierScore::ldof) {
      const WideRows rows(session_, task_.table, resident_rows(), static_cast<Metric>(task_.metric), task_.p);
      return find_ldof(engine_, near_, rows, scores_.data());
    }
    const double* known = k_distances_.data();
    if (task_.known_rows > 0 && task_.known_k_distances != nullptr) {
      known = uploaded(known_k_distances_, task_.known_k_distances, task_.known_rows);
    }
    if (core::compares_neighbors(score_)) find_local(known);
    const double* densities = local_.data();
    if (task_.known_rows > 0 && task_.known_densities != nullptr) {
      densities = uploaded(known_densities_, task_.known_densities, task_.known_rows);
    }
    if (score_ == OutlierScore::inflo) return score_both_sides();
    score_kernel<<<blocks_of_eights(task_.rows), kThreads, 0, engine_.stream>>>(
        score_, duplicates_, near_, local_.data(), densities, scores_.data());
    check_launch("outlier scores");
  }

  void find_local(const double* k_distances) {
    local_ = Buffer<double>(engine_, task_.rows);
    if (core::is_chain(score_)) {
      const WideRows rows(session_, task_.table, resident_rows(), static_cast<Metric>(task_.metric), task_.p);
      return find_chains(engine_, near_, rows, score_ == OutlierScore::cof_pyod, local_.data());
    }
    local_kernel<<<blocks_of_eights(task_.rows), kThreads, 0, engine_.stream>>>(score_, duplicates_, near_, k_distances,
                                                                                local_.data());
    check_launch("densities");
    cap();
  }

  /// Puts the caps in the place of densities without bound.
  void cap() {
    if (duplicates_ != Duplicates::cap || !core::has_densities(score_)) return;
    const std::int64_t ks = task_.ks;
    std::vector<double> caps(static_cast<std::size_t>(ks), 0);
    if (task_.known_rows > 0) {
      std::copy_n(task_.known_caps, ks, caps.begin());
    } else {
      const Buffer<unsigned long long> largest(engine_, ks);
      largest.zero();
      const unsigned blocks =
          static_cast<unsigned>(std::max<std::int64_t>(engine_.multiprocessors * 8, ks / kThreads + 1));
      largest_density_kernel<<<blocks, kThreads, 0, engine_.stream>>>(local_.data(), task_.rows, ks, largest.data());
      check_launch("the largest density");
      static_assert(sizeof(double) == sizeof(unsigned long long));
      check(cudaMemcpyAsync(caps.data(), largest.data(), largest.bytes(), cudaMemcpyDeviceToHost, engine_.stream),
            "copy from the device");
      engine_.synchronize();
      for (double& most : caps) most = most > 0 ? 2 * most : 1;
      if (task_.caps != nullptr) std::copy(caps.begin(), caps.end(), task_.caps);
    }
    const Buffer<double> on_device(engine_, ks);
    to_device(engine_, on_device.data(), caps.data(), ks);
    cap_kernel<<<blocks_for(task_.rows * ks, kThreads), kThreads, 0, engine_.stream>>>(local_.data(), task_.rows * ks,
                                                                                       ks, on_device.data());
    check_launch("caps of densities");
    engine_.synchronize();  // `caps` goes
  }

  void score_both_sides() {
    const std::int64_t entries = near_.offsets != nullptr ? task_.entries : task_.rows * task_.k;
    KeyedValues pairs(engine_, entries);
    if (near_.offsets != nullptr) {
      reverse_lists_kernel<<<blocks_of_eights(task_.rows), kThreads, 0, engine_.stream>>>(near_, pairs.keys[0].data(),
                                                                                          pairs.values[0].data());
    } else {
      reverse_kernel<<<blocks_for(entries, kThreads), kThreads, 0, engine_.stream>>>(near_, pairs.keys[0].data(),
                                                                                     pairs.values[0].data());
    }
    check_launch("reversed neighborhoods");
    int bits = 1;
    while (bits < 63 && std::int64_t{1} << bits < task_.rows) ++bits;
    sort_by_key(engine_, pairs, entries, bits);
    inflo_kernel<<<blocks_of_eights(task_.rows), kThreads, 0, engine_.stream>>>(
        duplicates_, near_, local_.data(), pairs.keys[0].data(), pairs.values[0].data(), entries, scores_.data());
    check_launch("influenced scores");
  }

  void score_range() {
    const std::int64_t ks = task_.ks;
    local_ = Buffer<double>(engine_, task_.rows * ks);
    const bool own = task_.known_rows == 0;
    const double* const known = own ? near_.distances + (task_.k_from - 1)
                                    : uploaded(known_k_distances_, task_.known_k_distances, task_.known_rows * ks);
    const unsigned blocks = blocks_for(task_.rows, kThreads / 32);
    range_local_kernel<<<blocks, kThreads, 0, engine_.stream>>>(near_, task_.k_from, ks, core::added_reach(duplicates_),
                                                                known, own ? near_.stride : ks, local_.data());
    check_launch("densities by k");
    cap();
    const double* const densities =
        own ? local_.data() : uploaded(known_densities_, task_.known_densities, task_.known_rows * ks);
    range_score_kernel<<<blocks, kThreads, 0, engine_.stream>>>(near_, task_.k_from, ks, duplicates_,
                                                                static_cast<AcrossK>(task_.across), local_.data(),
                                                                densities, scores_.data());
    check_launch("scores across k");
  }

  void hand_over(const Buffer<unsigned long long>& copied) {
    unsigned long long count = 0;
    to_host(engine_, &count, copied.data(), 1);
    to_host(engine_, task_.scores, scores_.data(), task_.rows);
    if (task_.densities != nullptr && local_.size() > 0) {
      to_host(engine_, task_.densities, local_.data(), task_.rows * task_.ks);
    }
    if (task_.k_distances != nullptr && task_.k_from == 0) {
      to_host(engine_, task_.k_distances, k_distances_.data(), task_.rows);
    } else if (task_.k_distances != nullptr) {
      fetch_range(engine_, near_, task_.k_from, task_.ks, task_.k_distances);
    }
    engine_.synchronize();
    task_.copied = static_cast<std::int64_t>(count);
  }

  Session& session_;
  const Host& host_;
  const plugin::Search* search_;
  plugin::Outliers& task_;
  plugin::Counters& counters_;
  const Engine& engine_;
  OutlierScore score_;
  Duplicates duplicates_;
  Neighborhoods near_;
  Buffer<std::int64_t> ids_;
  Buffer<double> distances_;
  Buffer<std::int64_t> offsets_;
  Buffer<std::int64_t> weights_;
  Buffer<double> k_distances_;  // of the rows
  Buffer<double> local_;        // of the rows
  Buffer<double> known_k_distances_;
  Buffer<double> known_densities_;
  Buffer<double> scores_;
};

}  // namespace

std::uint64_t outlier_bytes(const Session& session, const plugin::Outliers& task) {
  const auto score = static_cast<OutlierScore>(task.score);
  const auto rows = static_cast<std::uint64_t>(task.rows);
  const auto ks = static_cast<std::uint64_t>(task.ks);
  const std::uint64_t entries = task.offsets != nullptr ? static_cast<std::uint64_t>(task.entries)
                                                        : rows * static_cast<std::uint64_t>(task.stride);
  std::uint64_t bytes = entries * (task.weights != nullptr ? 24 : 16) + rows * 16;
  bytes += (rows + static_cast<std::uint64_t>(task.known_rows)) * ks * 2 * sizeof(double);
  if (score == OutlierScore::inflo) bytes += KeyedValues::bytes(static_cast<std::int64_t>(entries));
  if (core::needs_table(score)) bytes += WideRows::bytes(task.table) + pair_bytes(session.engine, task.k);
  return require_left(session, bytes);
}

OutlierRows::OutlierRows(Session& session, const Host& host, const plugin::Search& search, plugin::Outliers& task,
                         plugin::Counters& counters)
    : session_(session),
      score_(static_cast<OutlierScore>(task.score)),
      duplicates_(static_cast<Duplicates>(task.duplicates)),
      across_(static_cast<AcrossK>(task.across)),
      k_from_(task.k_from),
      ks_(task.ks),
      known_rows_(task.known_rows),
      bytes_(outlier_bytes(session, task)),
      ids_(session.engine, task.rows * task.stride),
      distances_(session.engine, task.rows * task.stride),
      known_(session.engine, task.known_rows * task.ks) {
  const Engine& engine = session_.engine;
  near_ = {ids_.data(), distances_.data(), nullptr, nullptr, task.rows, task.k, task.stride};
  find_lists(session_, host, search, bytes_, ids_.data(), distances_.data(), counters);
  const Buffer<unsigned long long> copied(engine, 1);
  const Buffer<double> k_distances(engine, task.rows);
  copied.zero();
  k_distance_kernel<<<blocks_for(task.rows, kThreads), kThreads, 0, engine.stream>>>(near_, k_distances.data(),
                                                                                     copied.data());
  check_launch("k-distances");
  unsigned long long count = 0;
  to_host(engine, &count, copied.data(), 1);
  if (k_from_ > 0) {
    fetch_range(engine, near_, k_from_, ks_, task.k_distances);
  } else {
    to_host(engine, task.k_distances, k_distances.data(), task.rows);
  }
  engine.synchronize();
  task.copied = static_cast<std::int64_t>(count);
  session_.resident_bytes += bytes_;
}

OutlierRows::~OutlierRows() {
  session_.resident_bytes -= bytes_;
}

/// To the device, of all rows.
const double* OutlierRows::upload(const double* values) {
  to_device(session_.engine, known_.data(), values, known_rows_ * ks_);
  return known_.data();
}

void OutlierRows::densities(const double* k_distances, double* densities) {
  const Engine& engine = session_.engine;
  const double* const known = k_distances != nullptr ? upload(k_distances) : nullptr;
  const Buffer<double> local(engine, near_.rows * ks_);
  if (k_from_ > 0) {
    range_local_kernel<<<blocks_for(near_.rows, kThreads / 32), kThreads, 0, engine.stream>>>(
        near_, k_from_, ks_, core::added_reach(duplicates_), known, ks_, local.data());
  } else {
    local_kernel<<<blocks_of_eights(near_.rows), kThreads, 0, engine.stream>>>(score_, duplicates_, near_, known,
                                                                               local.data());
  }
  check_launch("densities");
  to_host(engine, densities, local.data(), local.size());
  engine.synchronize();
}

void OutlierRows::scores(const double* densities, std::int64_t first_row, double* scores) {
  const Engine& engine = session_.engine;
  const double* const all = upload(densities);
  const double* const own = all + first_row * ks_;
  const Buffer<double> found(engine, near_.rows);
  if (k_from_ > 0) {
    range_score_kernel<<<blocks_for(near_.rows, kThreads / 32), kThreads, 0, engine.stream>>>(
        near_, k_from_, ks_, duplicates_, across_, own, all, found.data());
  } else {
    score_kernel<<<blocks_of_eights(near_.rows), kThreads, 0, engine.stream>>>(score_, duplicates_, near_, own, all,
                                                                               found.data());
  }
  check_launch("outlier scores");
  to_host(engine, scores, found.data(), found.size());
  engine.synchronize();
}

void score_outliers(Session& session, const Host& host, const plugin::Search* search, plugin::Outliers& task,
                    plugin::Counters& counters) {
  Run(session, host, search, task, counters).run();
}

}  // namespace vicinal::cuda::lof

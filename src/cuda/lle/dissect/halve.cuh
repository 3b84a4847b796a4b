// Halving a part on the graph of its cells, as solver/halving.cpp does on its finest graph. One block of threads.
#pragma once

#include <climits>

#include "cuda/lle/dissect/room.cuh"
#include "formulas/lle/part_rule.hpp"

namespace vicinal::cuda::lle {

class PartHalving {
 public:
  /// `at` [cells of the part], INT_MAX before and after.
  __device__ PartHalving(const PartGraph& graph, const PartCells& cells, std::int32_t* at, Counter counter)
      : g_(graph), c_(cells), at_(at), counter_(counter) {}

  /// Gives the points [begin, end) of the order their sides; those that a block may join with the other half are put
  /// into near[..], as many as come back.
  __device__ int halve(int begin, int end, PartRoom room, std::int32_t* near) {
    take_points(begin, end, room);
    take_neighbors(room);
    search_ways(room);
    side_ = room.take(count_);
    int best = 0;
    int fewest = INT_MAX;
    for (int way = 0; way < solver::kHalvingWays; ++way) {
      const int edges = take_way(way, end - begin);
      if (edges >= fewest) continue;
      fewest = edges;
      best = way;
    }
    if (best + 1 < solver::kHalvingWays) take_way(best, end - begin);
    find_cut(room);
    const int found = take_sides(begin, end, ways_[best], near);
    for (int i = rank(); i < count_; i += kPartThreads) at_[cells_[i]] = INT_MAX;
    __syncthreads();
    return found;
  }

 private:
  /// Where a cell of the part is among those of the points at hand, or -1.
  [[nodiscard]] __device__ int place(int cell) const {
    expect(cell >= 0 && cell < c_.cells);
    const int at = at_[cell];
    return at < 0 ? ~at : -1;
  }
  template <class Body>
  __device__ void for_each_near(int cell, const Body& body) const {
    for (std::int64_t e = c_.first[c_.begin + cell]; e < c_.first[c_.begin + cell + 1]; ++e) body(c_.neighbors[e]);
  }

  // Cells in the order in which the points name them.
  __device__ void take_points(int begin, int end, PartRoom& room) {
    for (int i = begin + rank(); i < end; i += kPartThreads) atomicMin(&at_[g_.cell[g_.order[i]] - c_.begin], i);
    __syncthreads();
    cells_ = room.take(min(end - begin, c_.cells));
    const auto named_by = [&](int i) { return g_.cell[g_.order[i]] - c_.begin; };
    count_ = running_sum(
        begin, end, [&](int i) { return at_[named_by(i)] == i ? 1 : 0; },
        [&](int i, int before, int names) {
          if (names == 0) return;
          cells_[before] = named_by(i);
          at_[named_by(i)] = ~before;
        });
    weights_ = room.take(count_, 0);
    __syncthreads();
    for (int i = begin + rank(); i < end; i += kPartThreads) {
      atomicAdd(&weights_[place(g_.cell[g_.order[i]] - c_.begin)], 1);
    }
    __syncthreads();
  }

  __device__ void take_neighbors(PartRoom& room) {
    first_ = room.take(count_ + 1);
    const int entries = running_sum(
        0, count_,
        [&](int i) {
          int own = 0;
          for_each_near(cells_[i], [&](int other) { own += other < c_.cells && at_[other] < 0 ? 1 : 0; });
          return own;
        },
        [&](int i, int before, int /*own*/) { first_[i] = before; });
    if (rank() == 0) first_[count_] = entries;
    neighbors_ = room.take(entries);
    __syncthreads();
    for (int i = rank(); i < count_; i += kPartThreads) {
      int at = first_[i];
      for_each_near(cells_[i], [&](int other) {
        if (other < c_.cells && at_[other] < 0) neighbors_[at++] = ~at_[other];
      });
    }
    __syncthreads();
  }

  // Hops from a cell, and the farthest one.
  __device__ int search(int start, std::int32_t* hops) {
    for (int i = rank(); i < count_; i += kPartThreads) hops[i] = -1;
    int from = start;
    int level = 0;
    int next = 0;  // all cells before were reached
    int head = 0;
    int tail = 0;
    int last = 0;
    for (;;) {
      __syncthreads();
      if (rank() == 0) {
        hops[from] = level;
        queue_[tail] = from;
      }
      counter_.set(++tail);
      while (head < tail) {
        for (int q = head + rank(); q < tail; q += kPartThreads) {
          const int cell = queue_[q];
          for (int e = first_[cell]; e < first_[cell + 1]; ++e) {
            const int other = neighbors_[e];
            if (hops[other] == -1 && atomicCAS(&hops[other], -1, level + 1) == -1) queue_[counter_.draw()] = other;
          }
        }
        last = head;
        head = tail;
        tail = counter_.get();
        ++level;
      }
      if (tail == count_) break;
      for (;; next += kPartThreads) {
        const int i = next + rank();
        from = least_of(i < count_ && hops[i] == -1 ? i : INT_MAX);
        if (from < count_) break;
      }
    }
    int farthest = INT_MAX;
    for (int q = last + rank(); q < tail; q += kPartThreads) farthest = min(farthest, queue_[q]);
    return least_of(farthest);
  }

  __device__ void search_ways(PartRoom& room) {
    queue_ = room.take(count_);
    std::int32_t* hops[4];
    for (std::int32_t*& corner : hops) corner = room.take(count_);
    const int a = search(search(0, hops[0]), hops[0]);
    const int b = search(a, hops[0]);
    search(b, hops[1]);
    const auto nearer = [&](int i) { return min(hops[0][i], hops[1][i]); };
    int most = 0;
    for (int i = rank(); i < count_; i += kPartThreads) most = max(most, nearer(i));
    most = most_of(most);
    int first = INT_MAX;
    for (int i = rank(); i < count_; i += kPartThreads) {
      if (nearer(i) == most) first = min(first, i);
    }
    first = least_of(first);
    const int c = most > 0 ? first : a;
    const int d = search(c, hops[2]);
    search(d, hops[3]);
    std::int32_t* means[solver::kHalvingWays];
    for (int way = 0; way < solver::kHalvingWays; ++way) {
      ways_[way] = room.take(count_);
      means[way] = room.take(count_);
    }
    for (int i = rank(); i < count_; i += kPartThreads) {
      int from[4];
      for (int corner = 0; corner < 4; ++corner) from[corner] = min(hops[corner][i], solver::kMaxHops);
      ways_[0][i] = solver::kKeySteps * (from[0] - from[1]);
      ways_[1][i] = solver::kKeySteps * (min(from[0], from[2]) - min(from[1], from[3]));
      ways_[2][i] = solver::kKeySteps * (min(from[0], from[3]) - min(from[1], from[2]));
    }
    __syncthreads();
    for (int sweep = 0; sweep < solver::kMoveSweeps; ++sweep) {
      for (int i = rank(); i < count_; i += kPartThreads) {
        long long sums[solver::kHalvingWays] = {ways_[0][i], ways_[1][i], ways_[2][i]};
        for (int e = first_[i]; e < first_[i + 1]; ++e) {
          for (int way = 0; way < solver::kHalvingWays; ++way) sums[way] += ways_[way][neighbors_[e]];
        }
        const int members = first_[i + 1] - first_[i] + 1;
        for (int way = 0; way < solver::kHalvingWays; ++way) {
          const int narrow = static_cast<int>(sums[way]);
          means[way][i] = narrow == sums[way] ? narrow / members : static_cast<int>(sums[way] / members);
        }
      }
      __syncthreads();
      for (int way = 0; way < solver::kHalvingWays; ++way) {
        std::int32_t* const old = ways_[way];
        ways_[way] = means[way];
        means[way] = old;
      }
    }
  }

  __device__ int weight_up_to(const std::int32_t* keys, int key) const {
    int sum = 0;
    for (int i = rank(); i < count_; i += kPartThreads) sum += keys[i] <= key ? weights_[i] : 0;
    return sum_of(sum);
  }

  // Sides by a way's keys, and how many neighbors they part.
  __device__ int take_way(int way, int points) {
    const std::int32_t* const keys = ways_[way];
    int low = INT_MAX;
    int high = INT_MIN;
    for (int i = rank(); i < count_; i += kPartThreads) {
      low = min(low, keys[i]);
      high = max(high, keys[i]);
    }
    low = least_of(low);
    high = most_of(high);
    while (low < high) {
      const int key = low + (high - low) / 2;
      if (2 * weight_up_to(keys, key) >= points) {
        high = key;
      } else {
        low = key + 1;
      }
    }
    middle_ = low;
    const int less = weight_up_to(keys, middle_ - 1);
    running_sum(
        0, count_, [&](int i) { return keys[i] == middle_ ? weights_[i] : 0; },
        [&](int i, int before, int /*own*/) {
          const bool left = keys[i] < middle_ || (keys[i] == middle_ && 2 * (less + before) < points);
          side_[i] = left ? kLeftSide : kRightSide;
        });
    int edges = 0;
    for (int i = rank(); i < count_; i += kPartThreads) {
      if (side_[i] != kLeftSide) continue;
      for (int e = first_[i]; e < first_[i + 1]; ++e) edges += side_[neighbors_[e]] != kLeftSide ? 1 : 0;
    }
    return sum_of(edges);
  }

  // Cells of a neighborhood that has both sides, be the cell in its midst one of these or not.
  __device__ void find_cut(PartRoom& room) {
    std::int32_t* const sides = room.take(c_.places, 0);
    at_cut_ = room.take(count_);
    __syncthreads();
    for (int i = rank(); i < count_; i += kPartThreads) {
      atomicOr(&sides[cells_[i]], side_[i]);
      for_each_near(cells_[i], [&](int other) { atomicOr(&sides[other], side_[i]); });
    }
    __syncthreads();
    for (int i = rank(); i < count_; i += kPartThreads) {
      bool at = sides[cells_[i]] == (kLeftSide | kRightSide);
      for_each_near(cells_[i], [&](int other) { at = at || sides[other] == (kLeftSide | kRightSide); });
      at_cut_[i] = at ? 1 : 0;
    }
    __syncthreads();
  }

  /// The part's cell of a number in the finest graph, or -1.
  [[nodiscard]] __device__ int find_cell(std::int32_t number) const {
    const int at = place_among(c_.number + c_.begin, c_.cells, number);
    return at < c_.cells && c_.number[c_.begin + at] == number ? at : -1;
  }

  __device__ int take_sides(int begin, int end, const std::int32_t* keys, std::int32_t* near) {
    counter_.set(0);
    for (int i = begin + rank(); i < end; i += kPartThreads) {
      const int v = g_.order[i];
      const int own = place(g_.cell[v] - c_.begin);
      int side = side_[own];
      if (at_cut_[own] != 0) {
        near[counter_.draw()] = v;
        long long sum = 0;
        for (std::uint32_t c = 0; c < g_.width; ++c) {
          const int w = g_.cols[static_cast<std::int64_t>(v) * g_.width + c];
          // Without v a block may be all another part's; that one's points may lie in cells of this one, too.
          int cell = g_.cell[w] - c_.begin;
          if (cell < 0 || cell >= c_.cells) cell = find_cell(g_.cell_of[w]);
          const int at = cell >= 0 ? place(cell) : -1;
          if (at >= 0) sum += keys[at] - middle_;
        }
        if (sum != 0) side = sum < 0 ? kLeftSide : kRightSide;
      }
      g_.side[v] = static_cast<std::uint8_t>(side);
    }
    return counter_.get();
  }

  const PartGraph& g_;
  const PartCells& c_;
  std::int32_t* at_;
  Counter counter_;
  int count_ = 0;          // cells that the points are in
  std::int32_t* cells_;    // [count]
  std::int32_t* weights_;  // [count] points in each
  std::int32_t* first_;    // [count + 1]
  std::int32_t* neighbors_;
  std::int32_t* queue_;                       // [count]
  std::int32_t* ways_[solver::kHalvingWays];  // [count] keys of each way
  std::int32_t* side_;                        // [count]
  std::int32_t* at_cut_;                      // [count]
  int middle_ = 0;
};

}  // namespace vicinal::cuda::lle

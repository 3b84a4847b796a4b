// The band of a cut and its minimum vertex cut, as solver/dissection.cpp and solver/separator.cpp find them. One block
// of threads. Levels are found by all threads; then each looks for paths of its own along falling levels. A state,
// where paths come into a vertex or go out of it, is claimed by the thread that comes first, and by nobody after that
// in a round: so threads never write what another one reads, and one that finds all ways on claimed has come to an end,
// since who claimed them either took a path through them or came to an end there.
#pragma once

#include "cuda/lle/dissect/room.cuh"
#include "formulas/lle/part_rule.hpp"

namespace vicinal::cuda::lle {

class PartCut {
 public:
  __device__ PartCut(const PartGraph& graph, Counter counter, Counter also)
      : g_(graph), counter_(counter), also_(also) {}

  /// Gives points of a part of so many the side of the cut, where blocks join the halves: near[0, count) may be theirs.
  __device__ void separate(int part, const std::int32_t* near, int count, PartRoom room) {
    find_band(part, near, count, room);
    take_hubs(room);
    take_states(room);
    for (int starts = find_levels(); starts > 0; starts = find_levels()) find_paths(starts);
    for (int i = rank(); i < n_; i += kPartThreads) {
      const std::int32_t v = points_[i];
      g_.side[v] = level_[in(i)] != kNoLevel ? kLeftSide : level_[out(i)] != kNoLevel ? kCutSide : kRightSide;
      g_.band[v] = kUnseen;
    }
    __syncthreads();
  }

 private:
  static constexpr int kNoLevel = -1;
  static constexpr int kClaimed = -2;
  static constexpr int kNone = -1;
  static constexpr int kRight = -2;  // before a path's first vertex
  static constexpr int kLeft = -3;   // after its last one

  static __device__ int in(int v) { return 2 * v; }
  static __device__ int out(int v) { return 2 * v + 1; }

  __device__ void spread(int block) {
    g_.for_each_alive(block, [&](std::int32_t w) {
      if (g_.band[w] != kUnseen || atomicCAS(&g_.band[w], kUnseen, kSeen) != kUnseen) return;
      const int at = counter_.draw();
      points_[at] = w;
      g_.band[w] = at;
    });
  }

  __device__ void forget_hubs(const std::int32_t* points, int count) const {
    for (int i = rank_of_point(); i < count; i += kPartThreads / kPointThreads) {
      g_.for_each_block(points[i], [&](std::int32_t block) { g_.hub[block] = kUnseen; });
    }
  }

  __device__ void find_band(int part, const std::int32_t* near, int count, PartRoom& room) {
    points_ = room.take(part);
    counter_.set(0);
    for (int i = rank_of_point(); i < count; i += kPartThreads / kPointThreads) {
      g_.for_each_block(near[i], [&](std::int32_t block) {
        if (g_.hub[block] != kUnseen || atomicCAS(&g_.hub[block], kUnseen, kSeen) != kUnseen) return;
        unsigned sides = 0;
        g_.for_each_alive(block, [&](std::int32_t w) { sides |= g_.side[w]; });
        if (sides != (kLeftSide | kRightSide)) return;
        g_.hub[block] = kSpread;
        spread(block);
      });
    }
    n_ = counter_.get();
    edge_ = 0;
    int sources = 0;
    const int hops = part > solver::kLargePart ? solver::kLargeHops : solver::kBandHops;
    for (int hop = 0; hop < hops; ++hop) {
      const int from = edge_;
      const int to = n_;
      __syncthreads();
      for (int i = from + rank_of_point(); i < to; i += kPartThreads / kPointThreads) {
        g_.for_each_block(points_[i], [&](std::int32_t block) {
          if (g_.hub[block] != kSpread && atomicExch(&g_.hub[block], kSpread) != kSpread) spread(block);
        });
      }
      n_ = counter_.get();
      sources = to;
      if (static_cast<double>(n_) > solver::kBandShare * static_cast<double>(part)) {
        for (int i = to + rank(); i < n_; i += kPartThreads) g_.band[points_[i]] = kUnseen;
        n_ = to;
        break;
      }
      edge_ = to;
    }
    __syncthreads();
    forget_hubs(near, count);
    forget_hubs(points_, sources);
    __syncthreads();
  }

  // Blocks that join points of the band are its hubs; those with points outside mark its edges.
  __device__ void take_hubs(PartRoom& room) {
    at_left_ = room.take(n_, 0);
    at_right_ = room.take(n_, 0);
    first_hub_ = room.take(n_ + 1);
    __syncthreads();
    const auto mark = [&](int i) { (g_.side[points_[i]] == kLeftSide ? at_left_ : at_right_)[i] = 1; };
    for (int i = edge_ + rank(); i < n_; i += kPartThreads) mark(i);
    const int entries = running_sum(
        0, n_, [&](int i) { return static_cast<int>(g_.first[points_[i] + 1] - g_.first[points_[i]]); },
        [&](int i, int before, int /*own*/) { first_hub_[i] = before; });
    if (rank() == 0) first_hub_[n_] = entries;
    hubs_ = room.take(entries);
    first_vertex_ = room.take(entries / 2);
    end_vertex_ = room.take(entries / 2);
    vertices_ = room.take(entries);
    counter_.set(0);
    also_.set(0);
    for (int i = rank_of_point(); i < n_; i += kPartThreads / kPointThreads) {
      g_.for_each_block(points_[i], [&](std::int32_t block) {
        if (g_.hub[block] != kUnseen || atomicCAS(&g_.hub[block], kUnseen, kSeen) != kUnseen) return;
        int members = 0;
        bool inside = true;
        g_.for_each_alive(block, [&](std::int32_t w) {
          if (g_.band[w] == kUnseen) {
            inside = false;
          } else {
            ++members;
          }
        });
        const int hub = members > 1 ? counter_.draw() : 0;
        int at = members > 1 ? also_.draw(members) : 0;
        if (members > 1) first_vertex_[hub] = at;
        g_.for_each_alive(block, [&](std::int32_t w) {
          const int vertex = g_.band[w];
          if (vertex == kUnseen) return;
          if (!inside) mark(vertex);
          if (members > 1) vertices_[at++] = vertex;
        });
        if (members < 2) return;
        expect(at <= first_hub_[n_]);
        end_vertex_[hub] = at;
        g_.hub[block] = hub;
      });
    }
    hub_count_ = counter_.get();
    for (int i = rank_of_point(); i < n_; i += kPartThreads / kPointThreads) {
      const std::int64_t of = g_.first[points_[i]];
      for (int e = first_hub_[i] + rank_at_point(); e < first_hub_[i + 1]; e += kPointThreads) {
        expect(e < first_hub_[n_]);
        hubs_[e] = g_.hub[g_.places[of + e - first_hub_[i]] / g_.width];
      }
    }
    __syncthreads();
    forget_hubs(points_, n_);
    __syncthreads();
  }

  __device__ void take_states(PartRoom& room) {
    level_ = room.take(2 * n_);
    hub_level_ = room.take(hub_count_);
    after_ = room.take(n_, kNone);
    before_ = room.take(n_, kNone);
    queue_ = room.take(2 * n_);
    hub_arc_ = room.take(hub_count_);
    arc_ = room.take(2 * n_);
    from_ = room.take(2 * n_);
    was_used_ = room.take(n_);
    starts_ = room.take(n_);
  }

  [[nodiscard]] __device__ bool used(int v) const { return after_[v] != kNone; }
  [[nodiscard]] __device__ bool begins(int v) const { return at_right_[v] != 0 && before_[v] != kRight; }
  [[nodiscard]] __device__ bool ends(int v) const { return at_left_[v] != 0 && after_[v] != kLeft; }

  __device__ void reach(int state, int level) {
    if (level_[state] == kNoLevel && atomicCAS(&level_[state], kNoLevel, level) == kNoLevel) {
      queue_[counter_.draw()] = state;
    }
  }

  // Distances to the left, from 1, and where a path may begin, as many as come back.
  __device__ int find_levels() {
    for (int i = rank(); i < 2 * n_; i += kPartThreads) level_[i] = kNoLevel;
    for (int i = rank(); i < n_; i += kPartThreads) was_used_[i] = used(i) ? 1 : 0;
    for (int i = rank(); i < hub_count_; i += kPartThreads) hub_level_[i] = kNoLevel;
    counter_.set(0);
    also_.set(0);
    for (int v = rank(); v < n_; v += kPartThreads) {
      if (at_left_[v] != 0) reach(out(v), 1);
    }
    int head = 0;
    int tail = counter_.get();
    for (int level = 1; head < tail; ++level) {
      for (int q = head + rank_of_point(); q < tail; q += kPartThreads / kPointThreads) {
        const int state = queue_[q];
        const int v = state / 2;
        const bool once = rank_at_point() == 0;
        if (state == out(v)) {
          if (once && !used(v)) reach(in(v), level + 1);
          if (once && after_[v] >= 0) reach(in(after_[v]), level + 1);
          continue;
        }
        if (once && begins(v)) starts_[also_.draw()] = v;
        if (once && used(v)) reach(out(v), level + 1);
        for (int e = first_hub_[v] + rank_at_point(); e < first_hub_[v + 1]; e += kPointThreads) {
          const int hub = hubs_[e];
          if (hub < 0 || hub_level_[hub] != kNoLevel || atomicCAS(&hub_level_[hub], kNoLevel, level) != kNoLevel)
            continue;
          for (int m = first_vertex_[hub]; m < end_vertex_[hub]; ++m) reach(out(vertices_[m]), level + 1);
        }
      }
      head = tail;
      tail = counter_.get();
    }
    return also_.get();
  }

  __device__ bool claim(int state, int level) {
    return level_[state] == level && atomicCAS(&level_[state], level, kClaimed) == level;
  }

  // The state that the next arc out of `state`, on that level, leads to, which it claims, or -1.
  __device__ int advance(int state, int level) {
    const int v = state / 2;
    if (state == in(v)) {
      if (arc_[state]++ > 0) return -1;
      const bool taken = was_used_[v] != 0;
      if (taken && before_[v] < 0) return -1;
      const int to = taken ? out(before_[v]) : out(v);
      return claim(to, level - 1) ? to : -1;
    }
    if (arc_[state] == 0) {
      arc_[state] = 1;
      if (was_used_[v] != 0 && claim(in(v), level - 1)) return in(v);
    }
    for (int e = first_hub_[v] + arc_[state] - 1; e < first_hub_[v + 1]; ++e, ++arc_[state]) {
      const int hub = hubs_[e];
      if (hub < 0 || hub_level_[hub] != level - 1) continue;
      for (;;) {
        const int m = atomicAdd(&hub_arc_[hub], 1);
        if (m >= end_vertex_[hub]) break;
        const int to = in(vertices_[m]);
        if (claim(to, level - 1)) return to;
      }
    }
    return -1;
  }

  __device__ void find_paths(int starts) {
    for (int i = rank(); i < 2 * n_; i += kPartThreads) arc_[i] = 0;
    for (int i = rank(); i < hub_count_; i += kPartThreads) hub_arc_[i] = first_vertex_[i];
    __syncthreads();
    for (int i = rank(); i < starts; i += kPartThreads) {
      const int start = starts_[i];
      int level = level_[in(start)];
      if (level < 0 || !claim(in(start), level)) continue;
      int state = in(start);
      from_[state] = kNone;
      while (state >= 0) {
        const int v = state / 2;
        if (state == out(v) && ends(v)) {
          take(state);
          break;
        }
        const int to = advance(state, level);
        if (to >= 0) {
          from_[to] = state;
          state = to;
          --level;
        } else {
          state = from_[state];
          ++level;
        }
      }
    }
    __syncthreads();
  }

  // The path that ends there changes who follows whom.
  __device__ void take(int state) {
    after_[state / 2] = kLeft;
    for (int from = from_[state]; from >= 0; state = from, from = from_[state]) {
      const int u = from / 2;
      const int v = state / 2;
      if (from != out(u)) continue;
      if (u != v) {
        after_[u] = v;
        before_[v] = u;
      } else {
        after_[u] = before_[u] = kNone;
      }
    }
    before_[state / 2] = kRight;
  }

  const PartGraph& g_;
  Counter counter_;
  Counter also_;
  int n_ = 0;     // vertices
  int edge_ = 0;  // the outermost layer begins here
  int hub_count_ = 0;
  std::int32_t* points_;  // [n]
  std::int32_t* at_left_;
  std::int32_t* at_right_;
  std::int32_t* first_hub_;     // [n + 1]
  std::int32_t* hubs_;          // of each vertex; below 0 what joins it with no other one of the band
  std::int32_t* first_vertex_;  // [hubs] vertices [first_vertex, end_vertex) of each
  std::int32_t* end_vertex_;
  std::int32_t* vertices_;
  std::int32_t* level_;  // [2 n]
  std::int32_t* hub_level_;
  std::int32_t* after_;
  std::int32_t* before_;
  std::int32_t* queue_;
  std::int32_t* hub_arc_;
  std::int32_t* arc_;
  std::int32_t* from_;      // [2 n] the state before, on a thread's way
  std::int32_t* was_used_;  // [n] before a round, in which that stays true of a state until it is claimed
  std::int32_t* starts_;    // [n] vertices where a path may begin
};

}  // namespace vicinal::cuda::lle

// What threads do while a spanning tree grows by Boruvka's method (contract clause 27), a thread a row or a component;
// compiled for the host as well, by the fake device of the tests. As on the CPU (cpu/density/spanning_tree.cpp): in a
// round each component but the largest finds its lightest edge to another one, first from the lists. What a list leaves
// out has a key of at least the row's FLOOR; a row whose floor is above its component's lightest edge so far needs no
// search, nor does a row whose lightest edge is known. The others are UNCERTAIN and searched (`Space::search`), which
// raises floors.
// A component is named by its smallest row. Its lightest edge is found in two steps, because an edge is more than a
// machine can compare at once: the least key of what its rows know, and then, of the rows that have that key, the least
// pair of rows. So what is found depends on no order. Rows have 32 bits.
#pragma once

#include <cstdint>

#include "core/ordered_bits.hpp"

namespace vicinal::cuda::density {

inline constexpr std::uint32_t kNoRow = 0xffffffffU;
inline constexpr std::int64_t kMostRows = 0xfffffffe;
inline constexpr unsigned long long kNoKey = ~0ULL;  // no number has that place
inline constexpr unsigned long long kNoPair = ~0ULL;

/// A number's place in the order of all: unsigned, so that atomicMin serves. One zero.
__device__ inline unsigned long long place_of(double key) {
  return static_cast<unsigned long long>(core::ordered_bits(key + 0.0)) ^ 0x8000000000000000ULL;
}
__device__ inline double key_at(unsigned long long place) {
  return core::from_ordered_bits(static_cast<std::int64_t>(place ^ 0x8000000000000000ULL));
}

__device__ inline unsigned long long pair_of(std::uint32_t i, std::uint32_t j) {
  return i < j ? static_cast<unsigned long long>(i) << 32 | j : static_cast<unsigned long long>(j) << 32 | i;
}
__device__ inline std::uint32_t first_of(unsigned long long pair) {
  return static_cast<std::uint32_t>(pair >> 32);
}
__device__ inline std::uint32_t second_of(unsigned long long pair) {
  return static_cast<std::uint32_t>(pair);
}

/// Lowers what other threads lower, too; most come too late, and only look.
template <class T>
__device__ void lower(T* to, T value) {
  if (value < *static_cast<const volatile T*>(to)) atomicMin(to, value);
}

/// The counter is the same for many threads of a warp.
__device__ inline void add_one(std::uint32_t* counter) {
#if defined(__CUDA_ARCH__)
  const unsigned peers = __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(counter));
  if (static_cast<int>(threadIdx.x) % 32 == __ffs(static_cast<int>(peers)) - 1) {
    atomicAdd(counter, static_cast<unsigned>(__popc(peers)));
  }
#else
  atomicAdd(counter, 1U);
#endif
}

/// Pointers lead to smaller rows, and only roots change: what was an ancestor stays one.
__device__ inline std::uint32_t root_of(const std::uint32_t* parent, std::uint32_t row) {
  for (;;) {
    const std::uint32_t above = *static_cast<const volatile std::uint32_t*>(parent + row);
    if (above == row) return row;
    row = above;
  }
}
/// Whether this call joined two components.
__device__ inline bool unite(std::uint32_t* parent, std::uint32_t x, std::uint32_t y) {
  for (;;) {
    x = root_of(parent, x);
    y = root_of(parent, y);
    if (x == y) return false;
    const std::uint32_t low = x < y ? x : y;
    const std::uint32_t high = x < y ? y : x;
    if (atomicCAS(parent + high, high, low) == high) return true;
  }
}

/// All that is known; arrays in the device's memory, of [n] where nothing else is said.
struct Growth {
  std::int64_t n;
  std::int64_t k;
  const std::int64_t* ids;  ///< [n, k]
  const double* keys;       ///< [n, k] of pairs
  const double* cores;      ///< or null: edges by distance alone
  double divisor;
  const std::uint32_t* order;  ///< rows in the order in which they are searched, or null: ascending
  std::uint32_t* parent;
  std::uint32_t* label;
  std::uint32_t* sizes;  ///< by component; and then the row that is searched first, or kNoRow
  std::uint32_t* next;   ///< the first entry of a row's list that may lie in another component
  double* floor;
  std::uint32_t* other;  ///< the row at the lightest edge that is known, or kNoRow
  double* other_key;
  std::uint8_t* known;       ///< whether no edge of the row to another component is lighter than that one
  unsigned long long* best;  ///< by component: the place of its least key
  unsigned long long* pair;  ///< by component: its lightest edge; before: the place of its rows' least floor
  std::uint8_t* flags;
  std::uint32_t* numbers;       ///< of what is flagged
  unsigned long long* largest;  ///< [1] size << 32 | ~component
  std::uint32_t* count;         ///< [1]
  double* edge_keys;            ///< [n - 1]
  unsigned long long* edges;    ///< [n - 1] pairs

  __device__ double core(std::int64_t row) const { return cores != nullptr ? cores[row] : -INFINITY; }
  __device__ double key(double core_a, double core_b, double pair_key) const {
    const double core = core_a < core_b ? core_b : core_a;
    const double reach = pair_key / divisor;
    return reach < core ? core : reach;
  }
  __device__ std::uint32_t largest_component() const { return ~static_cast<std::uint32_t>(*largest); }
  /// The key above which an edge is of no use to a component, while others may lower it.
  __device__ double limit(std::uint32_t component) const {
    const unsigned long long place = *static_cast<const volatile unsigned long long*>(best + component);
    return place == kNoKey ? INFINITY : key_at(place);
  }
  /// The key of a pair above which no edge of a row is of use; not below the exact number.
  __device__ double pair_limit(double core, std::uint32_t component) const {
    const double most = limit(component);
    if (core > most) return -INFINITY;
    return divisor == 1 ? most : nextafter(most, INFINITY) * divisor;
  }
  __device__ bool is_uncertain(std::int64_t row) const {
    const std::uint32_t own = label[row];
    return own != largest_component() && known[row] == 0 && floor[row] <= limit(own);
  }
  __device__ bool lists_are_in_order() const { return cores == nullptr && divisor == 1; }
  /// What a search of a row ends with: an edge, or kNoRow. What was passed over is above the limit of its time, which
  /// is not below the limit now, or comes after that edge.
  __device__ void finish(std::int64_t row, double found_key, std::uint32_t found) const {
    const double most = limit(label[row]);
    const bool is_lightest = found != kNoRow && found_key <= most;
    const double above = is_lightest ? found_key : nextafter(most, INFINITY);
    if (floor[row] < above) floor[row] = above;
    known[row] = is_lightest ? 1 : 0;
    if (!is_lightest) return;
    other[row] = found;
    other_key[row] = found_key;
  }
};

/// Each row is a component.
struct Begin {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    g.parent[row] = static_cast<std::uint32_t>(row);
    g.next[row] = 0;
    g.known[row] = 0;
    g.other[row] = kNoRow;
    g.floor[row] = g.k == g.n - 1 ? INFINITY : g.key(g.core(row), -INFINITY, g.keys[(row + 1) * g.k - 1]);
  }
};

/// The cores [n] are entries of the lists.
struct TakeCores {
  const double* keys;
  std::int64_t k;
  std::int64_t rank;
  double* cores;
  __device__ void operator()(std::int64_t row) const { cores[row] = keys[row * k + rank - 1]; }
};

struct Label {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    g.label[row] = root_of(g.parent, static_cast<std::uint32_t>(row));
    g.sizes[row] = 0;
    g.best[row] = kNoKey;
    g.pair[row] = kNoPair;
    if (row == 0) *g.largest = 0;
  }
};

struct Count {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    g.parent[row] = g.label[row];
    add_one(g.sizes + g.label[row]);
  }
};

struct FindLargest {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    const auto number = static_cast<std::uint32_t>(row);
    if (g.label[row] == number) {
      const unsigned long long size =
          static_cast<unsigned long long>(g.sizes[row]) << 32 | static_cast<std::uint32_t>(~number);
      if (size > *static_cast<const volatile unsigned long long*>(g.largest)) atomicMax(g.largest, size);
    }
    g.sizes[row] = kNoRow;
  }
};

/// The lightest edge of a row that its list or a former search has.
struct OfferKnown {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    const std::uint32_t own = g.label[row];
    if (own == g.largest_component()) return;
    if (g.known[row] != 0) {
      if (g.label[g.other[row]] != own) return lower(g.best + own, place_of(g.other_key[row]));
      g.known[row] = 0;
    }
    g.other[row] = kNoRow;
    const std::int64_t* const ids = g.ids + row * g.k;
    const double* const keys = g.keys + row * g.k;
    std::int64_t next = g.next[row];
    while (next < g.k && g.label[ids[next]] == own) ++next;
    g.next[row] = static_cast<std::uint32_t>(next);
    const double core = g.core(row);
    double best = INFINITY;
    std::int64_t found = -1;
    for (std::int64_t i = next; i < g.k; ++i) {
      if (found >= 0 && keys[i] / g.divisor > best) break;
      const std::int64_t id = ids[i];
      if (g.label[id] == own) continue;
      const double key = g.key(core, g.core(id), keys[i]);
      if (found < 0 || key < best || (key == best && id < found)) {
        best = key;
        found = id;
      }
      if (g.lists_are_in_order()) break;
    }
    if (found < 0) return;
    g.other[row] = static_cast<std::uint32_t>(found);
    g.other_key[row] = best;
    g.known[row] = g.lists_are_in_order() || best < g.floor[row] ? 1 : 0;
    lower(g.best + own, place_of(best));
  }
};

// Of each component the row with the least floor is searched first: what it finds spares others their search.
struct LeastFloor {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    if (!g.is_uncertain(row)) return;
    add_one(g.count);
    lower(g.pair + g.label[row], place_of(g.floor[row]));
  }
};
struct FirstOfLeastFloor {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    if (!g.is_uncertain(row) || place_of(g.floor[row]) != g.pair[g.label[row]]) return;
    lower(g.sizes + g.label[row], static_cast<std::uint32_t>(row));
  }
};
/// By places in the order of the search.
struct FlagPromising {
  Growth g;
  __device__ void operator()(std::int64_t at) const {
    const std::int64_t row = g.order != nullptr ? g.order[at] : at;
    g.flags[at] = g.sizes[g.label[row]] == row && g.is_uncertain(row) ? 1 : 0;
  }
};
struct FlagUncertain {
  Growth g;
  __device__ void operator()(std::int64_t at) const {
    g.pair[at] = kNoPair;
    g.flags[at] = g.is_uncertain(g.order != nullptr ? g.order[at] : at) ? 1 : 0;
  }
};

struct OfferPairs {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    const std::uint32_t own = g.label[row];
    if (own == g.largest_component() || g.known[row] == 0 || place_of(g.other_key[row]) != g.best[own]) return;
    lower(g.pair + own, pair_of(static_cast<std::uint32_t>(row), g.other[row]));
  }
};

/// Of two components with one edge the smaller one has it.
struct FlagEdges {
  Growth g;
  __device__ void operator()(std::int64_t row) const {
    const unsigned long long pair = g.label[row] == row ? g.pair[row] : kNoPair;
    bool has = pair != kNoPair;
    if (has) {
      const std::uint32_t a = g.label[first_of(pair)];
      const std::uint32_t across = a == row ? g.label[second_of(pair)] : a;
      has = g.pair[across] != pair || row < across;
    }
    g.flags[row] = has ? 1 : 0;
    if (row == 0) *g.count = 0;
  }
};
struct Join {
  Growth g;
  std::int64_t before;  ///< edges that there are
  __device__ void operator()(std::int64_t i) const {
    const std::uint32_t component = g.numbers[i];
    const unsigned long long pair = g.pair[component];
    g.edge_keys[before + i] = key_at(g.best[component]);
    g.edges[before + i] = pair;
    if (unite(g.parent, first_of(pair), second_of(pair))) add_one(g.count);
  }
};

/// Grows the tree; false where a round joins nothing, which cannot be. `Space` has
///   each(count, work): work(i) of each i below count, before what comes next;
///   list(count): `numbers` of those below `count` that are flagged, ascending, and returns how many they are;
///   search(count): the rows at the places in `numbers`, each by `Growth::finish`;
///   clear(at) and fetch(at): a counter;
///   relabel(uncertain): components have changed, and so many rows are uncertain; may change `order`;
///   grown(edges): that there are so many now.
template <class Space>
bool grow(Space& space, const Growth& g) {
  space.each(g.n, Begin{g});
  for (std::int64_t edges = 0; edges < g.n - 1;) {
    space.each(g.n, Label{g});
    space.each(g.n, Count{g});
    space.each(g.n, FindLargest{g});
    space.each(g.n, OfferKnown{g});
    space.clear(g.count);
    space.each(g.n, LeastFloor{g});
    if (const std::int64_t uncertain = space.fetch(g.count); uncertain > 0) {
      space.relabel(uncertain);
      space.each(g.n, FirstOfLeastFloor{g});
      space.each(g.n, FlagPromising{g});
      space.search(space.list(g.n));
      space.each(g.n, FlagUncertain{g});
      space.search(space.list(g.n));
    }
    space.each(g.n, OfferPairs{g});
    space.each(g.n, FlagEdges{g});
    const std::int64_t found = space.list(g.n);
    space.each(found, Join{g, edges});
    if (found == 0 || space.fetch(g.count) != found) return false;
    edges += found;
    space.grown(edges);
  }
  return true;
}

}  // namespace vicinal::cuda::density

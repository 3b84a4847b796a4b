// Nested dissection, by workers that take one part after the other, a small one with all that becomes of it. See
// ordering.hpp.
//
// A part is a range of the new order. It is halved on the graph of its cells (halving.hpp); points that a block joins
// with the other half, and those a few hops from them, are the band; its minimum vertex cut is the separator. The
// range then has what lies left, what lies right and the separator, in this order, which is that of elimination.
// No block has points of two parts, whatever the separators above have taken from it: so what is noted of points and
// of blocks belongs to one part at a time, and parts need not know of each other.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>
#include <utility>

#include "core/parallel.hpp"
#include "solver/halving.hpp"
#include "solver/ordering.hpp"
#include "solver/separator.hpp"

namespace vicinal::solver {
namespace {

constexpr Point kLeafPoints = 64;   // below, what fill is left does not pay for another separator
constexpr Point kTaskPart = 8192;   // up to here a part and all its parts are one task, which has them in its cache
constexpr Point kLargePart = 4096;  // parts with more get
constexpr int kLargeHops = 2;       // a band of so many hops on each side of the cut,
constexpr int kBandHops = 1;        // others one of these, and
constexpr double kBandShare = 0.4;  // of a part, at most
constexpr Point kUnseen = -1;
constexpr Point kSeen = -2;    // a block that was looked at
constexpr Point kSpread = -3;  // a block whose points are in the band

/// What is noted of every point and every block, each of one part's.
struct Notes {
  explicit Notes(Point n)
      : side(static_cast<std::size_t>(n), Side::left),
        place(static_cast<std::size_t>(n), kUnseen),
        hub(static_cast<std::size_t>(n), kUnseen) {}

  core::RawVector<Side> side;    ///< [n] of a point's part as it was last halved; of separators `separator`
  core::RawVector<Point> place;  ///< [n] of a point in the band that its part has at the time, or kUnseen
  core::RawVector<Point> hub;    ///< [n] of a block likewise, or one of those above
};

/// What one worker splits parts with.
class Splitter {
 public:
  Splitter(const Context& ctx, const Pattern& pattern, const CellGraphs& graphs, Notes& notes)
      : ctx_(ctx), a_(pattern.a), in_(pattern.in), graphs_(graphs), notes_(notes), halving_(ctx, graphs) {}

  struct Split {
    Point left = 0;  ///< how many points
    Point right = 0;
  };
  /// Puts the points [begin, end) of the order in theirs: left, right, separator. Without any on a side the part should
  /// stay in one piece.
  Split split(Point* begin, Point* end) {
    if (end - begin <= kLeafPoints) return {};
    halving_.halve(begin, end);
    near_.clear();
    for (const Point* v = begin; v != end; ++v) {
      const Point cell = graphs_.cell_of[*v];
      notes_.side[*v] = halving_.side(cell);
      if (!halving_.at_cut(cell)) continue;
      near_.push_back(*v);
      const Point* cols = a_.cols.data() + *v * a_.width;
      notes_.side[*v] = halving_.side_of_points(cols, cols + a_.width);
    }
    find_band(end - begin);
    take_hubs();
    const std::vector<Side> sides = separate(ctx_, band_);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      notes_.side[points_[i]] = sides[i];
      notes_.place[points_[i]] = kUnseen;
    }
    return share_out(begin, end);
  }

 private:
  [[nodiscard]] bool alive(Point v) const { return notes_.side[v] != Side::separator; }

  template <class Body>
  void for_each_block(Point v, const Body& body) const {
    for (std::int64_t e = in_.first[v]; e < in_.first[v + 1]; ++e) body(in_.blocks[e]);
  }
  /// The points of a block that are of a part still.
  template <class Body>
  void for_each_alive(Point block, const Body& body) const {
    const Point* cols = a_.cols.data() + block * a_.width;
    for (std::int64_t c = 0; c < a_.width; ++c) {
      if (alive(cols[c])) body(cols[c]);
    }
  }

  void spread(Point block) {
    if (notes_.hub[block] == kUnseen) seen_.push_back(block);
    notes_.hub[block] = kSpread;
    for_each_alive(block, [&](Point w) {
      if (notes_.place[w] != kUnseen) return;
      notes_.place[w] = static_cast<Point>(points_.size());
      points_.push_back(w);
    });
  }

  // Points of the band of a part of so many, from the cut outwards.
  void find_band(std::ptrdiff_t part) {
    points_.clear();
    seen_.clear();
    for (const Point v : near_) {
      for_each_block(v, [&](Point block) {
        if (notes_.hub[block] != kUnseen) return;
        seen_.push_back(block);
        notes_.hub[block] = kSeen;
        bool left = false;
        bool right = false;
        for_each_alive(block, [&](Point w) { (notes_.side[w] == Side::left ? left : right) = true; });
        if (left && right) spread(block);
      });
    }
    edge_ = 0;
    const int hops = part > kLargePart ? kLargeHops : kBandHops;
    const double most = kBandShare * static_cast<double>(part);
    for (int hop = 0; hop < hops; ++hop) {
      const std::size_t from = edge_;
      const std::size_t to = points_.size();
      for (std::size_t i = from; i < to; ++i) {
        for_each_block(points_[i], [&](Point block) {
          if (notes_.hub[block] != kSpread) spread(block);
        });
      }
      if (static_cast<double>(points_.size()) > most) {
        for (std::size_t i = to; i < points_.size(); ++i) notes_.place[points_[i]] = kUnseen;
        points_.resize(to);
        break;
      }
      edge_ = to;
    }
    for (const Point block : seen_) notes_.hub[block] = kUnseen;
  }

  // The blocks that join points of the band are its hubs; those that have points outside, too, mark its edges.
  void take_hubs() {
    const std::size_t n = points_.size();
    band_.at_left.assign(n, 0);
    band_.at_right.assign(n, 0);
    const auto mark = [&](Point place, Side side) { (side == Side::left ? band_.at_left : band_.at_right)[place] = 1; };
    for (std::size_t i = edge_; i < n; ++i) mark(static_cast<Point>(i), notes_.side[points_[i]]);
    band_.first_hub.assign(1, 0);
    band_.hubs.clear();
    band_.first_vertex.assign(1, 0);
    band_.vertices.clear();
    seen_.clear();
    for (const Point v : points_) {
      for_each_block(v, [&](Point block) {
        if (notes_.hub[block] == kUnseen) {
          seen_.push_back(block);
          bool inside = true;
          for_each_alive(block, [&](Point w) {
            if (notes_.place[w] == kUnseen) {
              inside = false;
            } else {
              band_.vertices.push_back(notes_.place[w]);
            }
          });
          const auto first = static_cast<std::size_t>(band_.first_vertex.back());
          if (!inside) {
            for (std::size_t i = first; i < band_.vertices.size(); ++i) {
              mark(band_.vertices[i], notes_.side[points_[band_.vertices[i]]]);
            }
          }
          if (band_.vertices.size() < first + 2) {
            band_.vertices.resize(first);
            notes_.hub[block] = kSeen;
          } else {
            notes_.hub[block] = static_cast<Point>(band_.first_vertex.size() - 1);
            band_.first_vertex.push_back(static_cast<Point>(band_.vertices.size()));
          }
        }
        if (notes_.hub[block] >= 0) band_.hubs.push_back(notes_.hub[block]);
      });
      band_.first_hub.push_back(static_cast<Point>(band_.hubs.size()));
    }
    for (const Point block : seen_) notes_.hub[block] = kUnseen;
  }

  Split share_out(Point* begin, Point* end) {
    Split found;
    Point* kept = begin;
    right_.clear();
    cut_.clear();
    for (Point* v = begin; v != end; ++v) {
      const Side side = notes_.side[*v];
      if (side == Side::left) {
        *kept++ = *v;
      } else {
        (side == Side::right ? right_ : cut_).push_back(*v);
      }
    }
    found.left = static_cast<Point>(kept - begin);
    found.right = static_cast<Point>(right_.size());
    std::copy(cut_.begin(), cut_.end(), std::copy(right_.begin(), right_.end(), kept));
    const bool good = found.left > 0 && found.right > 0 && 2 * static_cast<std::ptrdiff_t>(cut_.size()) < end - begin;
    if (good) return found;
    std::sort(begin, end);
    return {};
  }

  const Context& ctx_;
  const LocalRows& a_;
  const Incidence& in_;
  const CellGraphs& graphs_;
  Notes& notes_;
  Halving halving_;
  std::vector<Point> near_;    // points that blocks of both halves may have
  std::vector<Point> points_;  // of the band, from the cut outwards
  std::size_t edge_ = 0;       // its outermost layer begins here
  std::vector<Point> seen_;
  Band band_;
  std::vector<Point> right_;
  std::vector<Point> cut_;
};

/// A part of the order, which becomes its separator, or stays as a leaf.
struct Part {
  Point begin = 0;
  Point end = 0;
  std::int32_t parent = -1;

  [[nodiscard]] Point size() const noexcept { return end - begin; }
};

/// Leaves of part i what is its separator, and adds the others, if it was split.
void add_parts(std::vector<Part>& parts, std::size_t i, const Splitter::Split& split) {
  if (split.left == 0) return;
  const Point left = parts[i].begin;
  const Point right = left + split.left;
  parts[i].begin = right + split.right;
  parts.push_back({left, right, static_cast<std::int32_t>(i)});
  parts.push_back({right, parts[i].begin, static_cast<std::int32_t>(i)});
}

/// The nodes of the tree in the order of their points, which has children before parents; parts without points are
/// none. `within[i]`, where there are any: what part i is made of, a tree or several.
std::vector<Dissection::Node> nodes_of(const std::vector<Part>& parts,
                                       const std::vector<std::vector<Dissection::Node>>& within) {
  const auto has_tree = [&](std::int32_t i) { return !within.empty() && !within[i].empty(); };
  std::vector<std::int32_t> by_place(parts.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::erase_if(by_place, [&](std::int32_t i) { return parts[i].size() == 0; });
  std::sort(by_place.begin(), by_place.end(),
            [&](std::int32_t x, std::int32_t y) { return parts[x].begin < parts[y].begin; });
  std::vector<std::int32_t> node(parts.size(), -1);
  std::int32_t count = 0;
  for (const std::int32_t i : by_place) {
    node[i] = count;
    count += has_tree(i) ? static_cast<std::int32_t>(within[i].size()) : 1;
  }
  std::vector<Dissection::Node> nodes;
  nodes.reserve(static_cast<std::size_t>(count));
  for (const std::int32_t i : by_place) {
    std::int32_t above = parts[i].parent;
    while (above >= 0 && node[above] < 0) above = parts[above].parent;
    const std::int32_t parent = above < 0 ? -1 : node[above];
    if (!has_tree(i)) {
      nodes.push_back({parts[i].begin, parts[i].end, parent});
      continue;
    }
    for (const Dissection::Node& of : within[i]) {
      nodes.push_back({of.begin, of.end, of.parent < 0 ? parent : node[i] + of.parent});
    }
  }
  return nodes;
}

/// The parts of a dissection as workers come to them, the largest first. Their numbers tell who came when, and are not
/// seen in the tree.
class Agenda {
 public:
  explicit Agenda(Point n) : parts_{{0, n, -1}}, within_(1) { waiting_.emplace(n, 0); }

  struct Entry {
    std::size_t number = 0;
    Part part;
  };
  /// The next part, for which it waits while others may add one; false: none will come.
  bool take(const Context& ctx, Entry& entry) {
    std::unique_lock lock(mutex_);
    while (waiting_.empty()) {
      if (busy_ == 0 || stopped_) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      ctx.check_cancelled();
    }
    if (stopped_) return false;
    entry.number = waiting_.top().second;
    entry.part = parts_[entry.number];
    waiting_.pop();
    ++busy_;
    return true;
  }
  /// What was taken has been halved, or stays as it is.
  void put(const Entry& entry, const Splitter::Split& split) {
    const std::lock_guard lock(mutex_);
    const std::size_t before = parts_.size();
    add_parts(parts_, entry.number, split);
    within_.resize(parts_.size());
    for (std::size_t i = before; i < parts_.size(); ++i) waiting_.emplace(parts_[i].size(), i);
    leave(parts_[entry.number].size());
  }
  /// What was taken has become these nodes.
  void put(const Entry& entry, std::vector<Dissection::Node> nodes) {
    const std::lock_guard lock(mutex_);
    within_[entry.number] = std::move(nodes);
    leave(entry.part.size());
  }
  /// Nobody takes any more.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  /// Points that have their place.
  std::int64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  [[nodiscard]] std::vector<Dissection::Node> nodes() const { return nodes_of(parts_, within_); }

 private:
  void leave(Point points) {
    done_ += points;
    --busy_;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Part> parts_;
  std::vector<std::vector<Dissection::Node>> within_;
  std::priority_queue<std::pair<Point, std::size_t>> waiting_;  // sizes and numbers
  std::int64_t done_ = 0;
  int busy_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::uint64_t ordering_bytes(const Context& ctx, std::int64_t n, std::int64_t width) {
  const auto points = static_cast<std::uint64_t>(n);
  const std::uint64_t entries = points * static_cast<std::uint64_t>(width);
  constexpr std::uint64_t kIncidence = 2 * sizeof(Point);
  constexpr std::uint64_t kMaking = 3 * sizeof(Point);  // each entry once more, with its column
  // Then notes, cells and their graphs, whose lists are as long as the blocks at most, and back again.
  constexpr std::uint64_t kPoint = 2 * sizeof(std::int64_t) + sizeof(Side) + 8 * sizeof(Point);
  const std::uint64_t graphs = 2 * entries * sizeof(Point);
  const std::uint64_t workers = static_cast<std::uint64_t>(ctx.threads()) * Halving::bytes(n);
  return entries * kIncidence + points * kPoint + std::max(entries * kMaking, graphs + workers);
}

Dissection dissect(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near) {
  const Point n = pattern.a.points;
  const CellGraphs graphs = cell_graphs_of(ctx, pattern, near);
  Notes notes(n);
  Dissection found;
  found.order.resize(static_cast<std::size_t>(n));
  std::iota(found.order.begin(), found.order.end(), 0);
  std::vector<std::unique_ptr<Splitter>> splitters(static_cast<std::size_t>(ctx.threads()));
  const auto split = [&](const Part& part, int worker) {
    if (!splitters[worker]) splitters[worker] = std::make_unique<Splitter>(ctx, pattern, graphs, notes);
    return splitters[worker]->split(found.order.data() + part.begin, found.order.data() + part.end);
  };
  Agenda agenda(n);
  const auto work = [&](int worker) {
    for (Agenda::Entry entry; agenda.take(ctx, entry);) {
      ctx.check_cancelled();
      if (worker == 0) ctx.report("order", static_cast<double>(agenda.done()) / static_cast<double>(n));
      if (entry.part.size() > kTaskPart) {
        agenda.put(entry, split(entry.part, worker));
        continue;
      }
      std::vector<Part> own = {{entry.part.begin, entry.part.end, -1}};
      for (std::size_t i = 0; i < own.size(); ++i) add_parts(own, i, split(Part(own[i]), worker));
      agenda.put(entry, nodes_of(own, {}));
    }
  };
  core::parallel_for(ctx, ctx.threads(), [&](std::int64_t /*task*/, int worker) {
    try {
      work(worker);
    } catch (...) {
      agenda.stop();
      throw;
    }
  });
  found.nodes = agenda.nodes();
  return found;
}

}  // namespace vicinal::solver

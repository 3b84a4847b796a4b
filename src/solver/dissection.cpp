// Nested dissection, by workers that take one part after the other, a small one with all that becomes of it. See
// ordering.hpp.
//
// A part is a range of the new order. It is halved on the graph of its cells (halving.hpp); points that a block joins
// with the other half, and those a few hops from them, are the band; its minimum vertex cut is the separator. The
// range then has what lies left, what lies right and the separator, in this order, which is that of elimination.
// No block has points of two parts, whatever the separators above have taken from it: so what is noted of points and
// of blocks belongs to one part at a time, and parts need not know of each other.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "formulas/lle/part_rule.hpp"
#include "solver/agenda.hpp"
#include "solver/halving.hpp"
#include "solver/ordering.hpp"
#include "solver/separator.hpp"
#include "solver/small_parts.hpp"

namespace vicinal::solver {
namespace {

constexpr std::ptrdiff_t kBetweenPolls = 1 << 20;  // points between two looks at the cancel token
constexpr Point kUnseen = -1;
constexpr Point kSeen = -2;    // a block that was looked at
constexpr Point kSpread = -3;  // a block whose points are in the band

/// The order, and what is noted of every point and every block, each of one part's.
struct Notes {
  Notes(const Context& ctx, Point* into, Point n)
      : order(into),
        room(static_cast<std::size_t>(n)),
        side(static_cast<std::size_t>(n)),
        place(static_cast<std::size_t>(n)),
        hub(static_cast<std::size_t>(n)) {
    core::parallel_for(ctx, (n + kTaskPoints - 1) / kTaskPoints, [&](std::int64_t task, int /*worker*/) {
      const auto end = static_cast<Point>(std::min<std::int64_t>(n, (task + 1) * kTaskPoints));
      for (auto i = static_cast<Point>(task * kTaskPoints); i < end; ++i) {
        order[i] = i;
        side[i] = Side::left;
        place[i] = hub[i] = kUnseen;
      }
    });
  }

  Point* order;                 ///< [n] of points, as far as it is found
  core::RawVector<Point> room;  ///< [n] for a part's points where the part is

  core::RawVector<Side> side;    ///< [n] of a point's part as it was last halved; of separators `separator`
  core::RawVector<Point> place;  ///< [n] of a point in the band that its part has at the time, or kUnseen
  core::RawVector<Point> hub;    ///< [n] of a block likewise, or one of those above
};

/// What one worker splits parts with.
class Splitter {
 public:
  Splitter(const Context& ctx, const Pattern& pattern, const CellGraphs& graphs, Notes& notes)
      : ctx_(ctx), a_(pattern.a), in_(pattern.in), graphs_(graphs), notes_(notes), halving_(ctx, graphs) {}

  /// Puts the points [begin, end) of the order in theirs: left, right, separator. Without any on a side the part should
  /// stay in one piece.
  Split split(Point* begin, Point* end) {
    if (end - begin <= kLeafPoints) return {};
    halving_.halve(begin, end);
    near_.clear();
    for (const Point* v = begin; v != end; ++v) {
      if ((v - begin) % kBetweenPolls == 0) ctx_.check_cancelled();
      const Point cell = graphs_.cell_of[*v];
      notes_.side[*v] = halving_.side(cell);
      if (!halving_.at_cut(cell)) continue;
      near_.push_back(*v);
      const Point* cols = a_.cols.data() + *v * a_.width;
      notes_.side[*v] = halving_.side_of_point(*v, cols, cols + a_.width);
    }
    ctx_.check_cancelled();
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
    Point* const room = notes_.room.data() + (begin - notes_.order);
    Point* left = begin;
    Point* right = room;
    Point* cut = room + (end - begin);  // goes down
    for (Point* v = begin; v != end; ++v) {
      if ((v - begin) % kBetweenPolls == 0) ctx_.check_cancelled();
      switch (notes_.side[*v]) {
        case Side::left:
          *left++ = *v;
          break;
        case Side::right:
          *right++ = *v;
          break;
        default:
          *--cut = *v;
      }
    }
    const Split found{static_cast<Point>(left - begin), static_cast<Point>(right - room)};
    std::reverse_copy(cut, room + (end - begin), std::copy(room, right, left));
    const bool good = found.left > 0 && found.right > 0 && 2 * (room + (end - begin) - cut) < end - begin;
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
  // Each coarser graph has three quarters of the cells at most. Where many cells come apart `dissect` asks again.
  const std::uint64_t workers = Halving::bytes(4 * (2 * n / kCellPoints + 1), ctx.threads());
  return entries * kIncidence + points * kPoint + std::max(entries * kMaking, graphs + workers);
}

Dissection dissect(const Context& ctx, const Pattern& pattern, const std::vector<Point>& near,
                   const DissectOnDevice& device) {
  const Point n = pattern.a.points;
  const CellGraphs graphs = cell_graphs_of(ctx, pattern, near);
  std::int64_t cells = 0;
  for (const CellGraph& level : graphs.levels) cells += level.cells();
  const std::uint64_t of_workers = Halving::bytes(cells, ctx.threads());
  core::require_memory(ctx, of_workers, "lle");
  const bool on_device = device && of_workers + small_parts_bytes(ctx, graphs, n) <= ctx.memory_limit();
  Dissection found;
  found.order.resize(static_cast<std::size_t>(n));
  Notes notes(ctx, found.order.data(), n);
  std::vector<std::unique_ptr<Splitter>> splitters(static_cast<std::size_t>(ctx.threads()));
  const auto split = [&](const Part& part, int worker) {
    if (!splitters[worker]) splitters[worker] = std::make_unique<Splitter>(ctx, pattern, graphs, notes);
    return splitters[worker]->split(notes.order + part.begin, notes.order + part.end);
  };
  const auto dissect_small = [&](const Part& part, int worker) {
    std::vector<Part> own = {{part.begin, part.end, -1}};
    for (std::size_t i = 0; i < own.size(); ++i) add_parts(own, i, split(Part(own[i]), worker));
    return nodes_of(own, {});
  };
  Agenda agenda(n);
  std::vector<Agenda::Entry> small;  // left to a device
  std::mutex adding;
  const auto work = [&](int worker) {
    for (Agenda::Entry entry; agenda.take(ctx, entry);) {
      if (worker == 0) ctx.report("order", static_cast<double>(agenda.done()) / static_cast<double>(n));
      if (entry.part.size() > kSmallPart) {
        agenda.put(entry, split(entry.part, worker));
      } else if (on_device) {
        const std::lock_guard lock(adding);
        small.push_back(entry);
        agenda.put(entry, std::vector<Dissection::Node>());
      } else {
        agenda.put(entry, dissect_small(entry.part, worker));
      }
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
  if (!small.empty()) {
    std::sort(small.begin(), small.end(),
              [](const Agenda::Entry& x, const Agenda::Entry& y) { return x.part.begin < y.part.begin; });
    std::vector<Part> parts;
    parts.reserve(small.size());
    for (const Agenda::Entry& entry : small) parts.push_back(entry.part);
    const SmallParts asked = small_parts_of(ctx, graphs, pattern.in, notes.order, std::move(parts));
    Splits splits;
    splits.left.resize(found.order.size());
    splits.right.resize(found.order.size());
    splits.done.assign(small.size(), 0);
    device(asked, notes.order, splits);
    core::parallel_for(ctx, std::ssize(small), [&](std::int64_t i, int worker) {
      const Part& part = small[i].part;
      agenda.replace(small[i], splits.done[i] != 0 ? tree_of(part, splits) : dissect_small(part, worker));
    });
  }
  found.nodes = agenda.nodes();
  return found;
}

}  // namespace vicinal::solver

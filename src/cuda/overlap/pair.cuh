// One pair of features by one thread (contract clause 18), to the bit as geo/join.cpp and simd/overlap_inl.hpp do:
// every product and sum rounded by itself, term j of b in accumulator j mod 8. Pieces lie in shared memory, a column a
// thread.
#pragma once

#include "cuda/overlap/overlap.hpp"
#include "formulas/overlap/orientation.hpp"
#include "formulas/overlap/pieces.hpp"

namespace vicinal::cuda::overlap {

/// Pieces, and then what sums want of them in the same places: the sign is whether `from` is left of `to`.
class SharedChain {
 public:
  /// `numbers` a piece: four, and one for the weight of a length. Threads of a block have columns side by side.
  __device__ SharedChain(double* column, int numbers, int capacity)
      : column_(column),
        piece_stride_(numbers * static_cast<int>(blockDim.x)),
        numbers_(numbers),
        capacity_(capacity) {}

  __device__ void clear() { count_ = 0; }
  [[nodiscard]] __device__ bool empty() const { return count_ == 0; }
  [[nodiscard]] __device__ int size() const { return count_; }
  [[nodiscard]] __device__ bool overflowed() const { return overflowed_; }
  [[nodiscard]] __device__ geo::Piece back() const { return piece(count_ - 1); }
  __device__ void pop_back() { --count_; }
  __device__ void push_back(const geo::Piece& piece) {
    if (count_ == capacity_) {
      overflowed_ = true;
      return;
    }
    number(count_, 0) = piece.from.x;
    number(count_, 1) = piece.from.y;
    number(count_, 2) = piece.to.x;
    number(count_, 3) = piece.to.y;
    ++count_;
  }

  __device__ void to_lines(geo::Measure measure, double ceiling) {
    for (int k = 0; k < count_; ++k) {
      const geo::PieceLine line = geo::line_of(piece(k), measure, ceiling);
      number(k, 0) = line.sign > 0 ? line.left : line.right;
      number(k, 1) = line.height;
      number(k, 2) = line.sign > 0 ? line.right : line.left;
      number(k, 3) = line.slope;
      if (numbers_ > 4) number(k, 4) = line.weight;
    }
  }
  [[nodiscard]] __device__ geo::PieceLine line(int k) const {
    const double from = number(k, 0);
    const double to = number(k, 2);
    const bool rightwards = from < to;
    return {rightwards ? from : to, rightwards ? to : from,  number(k, 1),
            number(k, 3),           rightwards ? 1.0 : -1.0, numbers_ > 4 ? number(k, 4) : 0};
  }

 private:
  [[nodiscard]] __device__ double& number(int k, int which) const {
    return column_[k * piece_stride_ + which * static_cast<int>(blockDim.x)];
  }
  [[nodiscard]] __device__ geo::Piece piece(int k) const {
    return {{number(k, 0), number(k, 1)}, {number(k, 2), number(k, 3)}};
  }

  double* column_;
  int piece_stride_;
  int numbers_;
  int capacity_;
  int count_ = 0;
  bool overflowed_ = false;
};

/// What both lines span, and their heights at its ends.
struct LinesMet {
  double width;
  double f0, f1, g0, g1;

  __device__ LinesMet(const geo::PieceLine& a, const geo::PieceLine& b) {
    const double left = std::max(a.left, b.left);
    const double right = std::min(a.right, b.right);
    width = right - left;
    f0 = a.height + a.slope * (left - a.left);
    f1 = a.height + a.slope * (right - a.left);
    g0 = b.height + b.slope * (left - b.left);
    g1 = b.height + b.slope * (right - b.left);
  }
};

__device__ inline double area_term(const LinesMet& met, double signs) {
  const double d0 = met.f0 - met.g0;
  const double d1 = met.f1 - met.g1;
  double apart = fabs(d0) + fabs(d1);
  if (d0 * d1 < 0) apart = (d0 * d0 + d1 * d1) / apart;
  return (((met.f0 + met.f1) + (met.g0 + met.g1)) - apart) * met.width * signs;
}

__device__ inline double length_term(const LinesMet& met, const geo::PieceLine& a, const geo::PieceLine& b) {
  const double d0 = met.f0 - met.g0;
  const double d1 = met.f1 - met.g1;
  const double apart = fabs(d0) + fabs(d1);
  const double negative = std::max(-d0, 0.0) + std::max(-d1, 0.0);
  const double below = apart > 0 ? negative / apart : 0.5;
  return ((a.weight * b.sign) * below + (b.weight * a.sign) * (1 - below)) * met.width;
}

struct PairSums {
  double sum = 0;
  double span = 0;
};

__device__ inline double combined(const double* s) {
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

template <bool lengths>
__device__ PairSums sum_pieces(const SharedChain& a, const SharedChain& b) {
  double sums[8];
  double spans[8];
  for (int lane = 0; lane < 8; ++lane) {
    double sum = 0;
    double span = 0;
    if (lane < b.size()) {
      geo::PieceLine g = b.line(lane);
      for (int i = 0; i < a.size(); ++i) {
        const geo::PieceLine f = a.line(i);
        for (int j = lane; j < b.size(); j += 8) {
          if (b.size() > 8) g = b.line(j);
          if (!(std::min(f.right, g.right) - std::max(f.left, g.left) > 0)) continue;
          const LinesMet met(f, g);
          sum += lengths ? length_term(met, f, g) : area_term(met, f.sign / 4 * g.sign);
          span += met.width;
        }
      }
    }
    sums[lane] = sum;
    spans[lane] = span;
  }
  return {combined(sums), lengths ? 0 : combined(spans)};
}

/// What of a relation needs no exact sign, and no borders that touch.
class QuickRelation {
 public:
  __device__ QuickRelation(const geo::Edges& a, const geo::Box& box_a, const geo::Edges& b, const geo::Box& box_b)
      : a_(a), b_(b), box_a_(box_a), box_b_(box_b) {}

  /// plugin::kUndecided where it does.
  __device__ RegionRelation relation() {
    const geo::Box box = geo::common(box_a_, box_b_);
    const bool crossed = any_edge(a_, box, [&](const geo::Point& p, const geo::Point& q) {
      return any_edge(b_, box, [&](const geo::Point& r, const geo::Point& s) { return cross(p, q, r, s); });
    });
    if (crossed) return RegionRelation::overlaps;
    if (unsure_) return plugin::kUndecided;
    bool interiors = false;
    bool only_a = false;
    bool only_b = false;
    place_chains(a_, b_, box_b_, interiors, only_a, only_b);
    place_chains(b_, a_, box_a_, interiors, only_b, only_a);
    if (unsure_) return plugin::kUndecided;
    if (!interiors) return RegionRelation::disjoint;
    if (only_a && only_b) return RegionRelation::overlaps;
    return only_a ? RegionRelation::contains : RegionRelation::within;
  }

 private:
  /// Whether found(from, to) for an edge that is near `box`.
  template <class Found>
  __device__ static bool any_edge(const geo::Edges& edges, const geo::Box& box, const Found& found) {
    for (std::int64_t k = 0; k < edges.count; ++k) {
      const geo::Run& run = edges.runs[k];
      if (!meet(run.box, box)) continue;
      const geo::Point* const p = edges.points + run.first;
      for (std::int64_t e = 0; e < run.edges; ++e) {
        if (p[e] == p[e + 1]) continue;
        const geo::Box own = {std::min(p[e].x, p[e + 1].x), std::min(p[e].y, p[e + 1].y), std::max(p[e].x, p[e + 1].x),
                              std::max(p[e].y, p[e + 1].y)};
        if (meet(own, box) && found(p[e], p[e + 1])) return true;
      }
    }
    return false;
  }

  __device__ bool cross(const geo::Point& p, const geo::Point& q, const geo::Point& r, const geo::Point& s) {
    if (std::max(p.x, q.x) < std::min(r.x, s.x) || std::max(r.x, s.x) < std::min(p.x, q.x) ||
        std::max(p.y, q.y) < std::min(r.y, s.y) || std::max(r.y, s.y) < std::min(p.y, q.y)) {
      return false;
    }
    const int from_f = geo::quick_orientation(p, q, r);
    const int to_f = geo::quick_orientation(p, q, s);
    const bool sure_f = from_f != geo::kUnsure && to_f != geo::kUnsure;
    if (sure_f && from_f == to_f) return false;
    const int from_e = geo::quick_orientation(r, s, p);
    const int to_e = geo::quick_orientation(r, s, q);
    const bool sure_e = from_e != geo::kUnsure && to_e != geo::kUnsure;
    if (sure_e && from_e == to_e) return false;
    if (sure_f && sure_e) return true;
    unsure_ = true;
    return false;
  }

  __device__ bool inside(const geo::Point& p, const geo::Edges& edges, const geo::Box& whole) {
    if (p.x < whole.x0 || p.x > whole.x1 || p.y < whole.y0 || p.y > whole.y1) return false;
    bool odd = false;
    for (std::int64_t k = 0; k < edges.count; ++k) {
      const geo::Run& run = edges.runs[k];
      if (run.box.y1 < p.y || run.box.y0 > p.y || run.box.x1 < p.x) continue;
      const geo::Point* const q = edges.points + run.first;
      for (std::int64_t e = 0; e < run.edges; ++e) {
        const bool up = q[e].y <= p.y && q[e + 1].y > p.y;
        const bool down = q[e + 1].y <= p.y && q[e].y > p.y;
        if (!up && !down) continue;
        const int side = geo::quick_orientation(q[e], q[e + 1], p);
        if (side == geo::kUnsure) unsure_ = true;
        odd ^= side == (up ? 1 : -1);
      }
    }
    return odd;
  }

  /// Chains that touch nothing lie where any of their points does.
  __device__ void place_chains(const geo::Edges& own, const geo::Edges& other, const geo::Box& box, bool& interiors,
                               bool& only_own, bool& only_other) {
    std::int64_t chain = -1;
    for (std::int64_t k = 0; k < own.count; ++k) {
      const geo::Run& run = own.runs[k];
      if (run.chain == chain) continue;
      chain = run.chain;
      if (inside(own.points[run.first], other, box)) {
        interiors = only_other = true;
      } else {
        only_own = true;
      }
    }
  }

  const geo::Edges& a_;
  const geo::Edges& b_;
  const geo::Box& box_a_;
  const geo::Box& box_b_;
  bool unsure_ = false;
};

/// Pair (i, j) of two layers' parts, in a thread's own room for pieces.
class PairOnDevice {
 public:
  __device__ PairOnDevice(const LayerView& a, std::int64_t i, const LayerView& b, std::int64_t j, SharedChain& pieces_a,
                          SharedChain& pieces_b)
      : edges_a_(a.edges(i)),
        edges_b_(b.edges(j)),
        box_a_(a.boxes[i]),
        box_b_(b.boxes[j]),
        area_a_(a.areas[i]),
        area_b_(b.areas[j]),
        pieces_a_(pieces_a),
        pieces_b_(pieces_b) {}

  /// False, and nothing said, where pieces did not fit the room.
  __device__ bool decide(bool width, Overlap& pair) {
    double error = 0;
    pair.area = area(error);
    pair.width = 0;
    pair.relation = RegionRelation::overlaps;
    if (!geo::plainly_overlap(pair.area, error, area_a_ - geo::area_error(box_a_, edges_a_.count),
                              area_b_ - geo::area_error(box_b_, edges_b_.count))) {
      pair.relation = QuickRelation(edges_a_, box_a_, edges_b_, box_b_).relation();
      if (pair.relation == plugin::kUndecided) return !overflowed();
      pair.area = geo::area_by(pair.relation, pair.area, area_a_, area_b_);
    }
    if (width && pair.area > 0) {
      const double length = perimeter();
      if (length > 0) pair.width = 2 * pair.area / length;
    }
    if (halved_) pair.relation = plugin::kUndecided;
    return !overflowed();
  }

 private:
  [[nodiscard]] __device__ bool overflowed() const { return pieces_a_.overflowed() || pieces_b_.overflowed(); }

  template <bool lengths>
  __device__ PairSums sums(const geo::Box& box, geo::Measure measure) {
    const bool turned = measure == geo::Measure::steep_edges;
    const double ceiling = turned ? box.x1 - box.x0 : box.y1 - box.y0;
    pieces_a_.clear();
    pieces_b_.clear();
    geo::cut_edges(pieces_a_, edges_a_, box, turned);
    geo::cut_edges(pieces_b_, edges_b_, box, turned);
    if (pieces_a_.size() * pieces_b_.size() > geo::kWhole) halved_ = true;
    pieces_a_.to_lines(measure, ceiling);
    pieces_b_.to_lines(measure, ceiling);
    return sum_pieces<lengths>(pieces_a_, pieces_b_);
  }

  __device__ double area(double& error) {
    const geo::Box box = geo::common(box_a_, box_b_);
    if (geo::is_flat(box)) return 0;
    const PairSums found = sums<false>(box, geo::Measure::area);
    const int a = pieces_a_.size();
    const int b = pieces_b_.size();
    if (a > 0 && b > 0) error = geo::sum_error(box.y1 - box.y0, found.span, a, b);
    error += geo::cut_error(box_a_, box_b_, a + b);
    return std::max(found.sum, 0.0);
  }

  __device__ double perimeter() {
    const geo::Box box = geo::with_margin(geo::common(box_a_, box_b_));
    const double flat = sums<true>(box, geo::Measure::flat_edges).sum;
    return flat + sums<true>(box, geo::Measure::steep_edges).sum;
  }

  geo::Edges edges_a_;
  geo::Edges edges_b_;
  geo::Box box_a_;
  geo::Box box_b_;
  double area_a_;
  double area_b_;
  SharedChain& pieces_a_;
  SharedChain& pieces_b_;
  bool halved_ = false;  ///< the host would halve the box
};

}  // namespace vicinal::cuda::overlap

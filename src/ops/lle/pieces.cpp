// See pieces.hpp.
#include "ops/lle/pieces.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "solver/closed_classes.hpp"
#include "solver/pieces.hpp"

namespace vicinal::ops {
namespace {

using solver::ClosedClasses;
using solver::LocalRows;
using solver::Point;

constexpr Point kOpen = -1;               // in no piece yet
constexpr Point kListed = -2;             // the same, and of the next round
constexpr std::int64_t kPlacedRows = 64;  // a task

// Rounds from the pieces outwards: who has a neighbor in a piece joins the piece of the first one that has.
class Rounds {
 public:
  Rounds(const Context& ctx, const LocalRows& a, std::vector<std::int64_t>& piece, LlePartition& parts)
      : ctx_(ctx), a_(a), piece_(piece), parts_(parts) {}

  void run() {
    find_open_arrows();
    std::vector<Point> now;
    for (Point i = 0; i < a_.points; ++i) {
      if (parts_.round[i] == kOpen && first_joined(i) >= 0) now.push_back(i);
    }
    while (!now.empty()) {
      ctx_.check_cancelled();
      for (const Point i : now) piece_[i] = piece_[first_joined(i)];
      const auto number = static_cast<Point>(parts_.rounds.size() + 1);
      for (const Point i : now) parts_.round[i] = number;
      std::vector<Point> next;
      for (const Point i : now) {
        for (std::int64_t e = first_[i]; e < first_[i + 1]; ++e) {
          Point& round = parts_.round[from_[e]];
          if (round != kOpen) continue;
          round = kListed;
          next.push_back(from_[e]);
        }
      }
      std::sort(next.begin(), next.end());
      parts_.rounds.push_back(std::exchange(now, std::move(next)));
    }
  }

 private:
  template <class Body>
  void for_each_open_arrow(const Body& body) const {
    for (Point i = 0; i < a_.points; ++i) {
      if (parts_.round[i] != kOpen) continue;
      for (std::int64_t c = 1; c < a_.width; ++c) {
        const Point to = a_.cols[i * a_.width + c];
        if (parts_.round[to] == kOpen) body(i, to);
      }
    }
  }

  // Of rows without a piece: who has each as a neighbor.
  void find_open_arrows() {
    first_.assign(static_cast<std::size_t>(a_.points) + 1, 0);
    for_each_open_arrow([&](Point /*from*/, Point to) { ++first_[to + 1]; });
    for (Point i = 0; i < a_.points; ++i) first_[i + 1] += first_[i];
    from_.resize(static_cast<std::size_t>(first_.back()));
    std::vector<std::int64_t> next(first_.begin(), first_.end() - 1);
    for_each_open_arrow([&](Point from, Point to) { from_[next[to]++] = from; });
  }

  // The nearest neighbor that has a piece; -1: none has.
  [[nodiscard]] Point first_joined(Point i) const {
    for (std::int64_t c = 1; c < a_.width; ++c) {
      const Point to = a_.cols[i * a_.width + c];
      if (parts_.round[to] >= 0) return to;
    }
    return -1;
  }

  const Context& ctx_;
  const LocalRows& a_;
  std::vector<std::int64_t>& piece_;
  LlePartition& parts_;
  std::vector<std::int64_t> first_;
  std::vector<Point> from_;
};

// By their smallest rows; `component` is known of each row.
void number_pieces(std::vector<std::int64_t>& piece, const std::vector<std::int64_t>& component, std::int64_t labels,
                   LlePartition& parts) {
  std::vector<std::int64_t> number(static_cast<std::size_t>(labels), -1);
  parts.component.clear();
  for (std::size_t i = 0; i < piece.size(); ++i) {
    std::int64_t& of = number[piece[i]];
    if (of < 0) {
      of = parts.pieces();
      parts.component.push_back(component[i]);
    }
    piece[i] = of;
  }
}

}  // namespace

LlePartition pieces_of(const Context& ctx, const LocalRows& a, LleVariant variant, std::vector<std::int64_t>& piece) {
  LlePartition parts;
  piece = solver::pieces_of(ctx, a);
  parts.components = *std::max_element(piece.begin(), piece.end()) + 1;
  for (std::int64_t c = 0; c < parts.components; ++c) parts.component.push_back(c);
  if (variant != LleVariant::standard) return parts;
  const ClosedClasses closed = solver::closed_classes_of(ctx, a);
  parts.classes.assign(static_cast<std::size_t>(parts.components), 1);
  if (closed.count == parts.components) return parts;  // each has one at least
  const std::vector<std::int64_t> component = piece;
  std::vector<std::int64_t> of_class(static_cast<std::size_t>(closed.count));
  parts.round.assign(piece.size(), 0);
  for (std::size_t i = 0; i < piece.size(); ++i) {
    piece[i] = closed.reached[i];
    if (closed.reached[i] == ClosedClasses::kSeveral) {
      parts.round[i] = kOpen;
    } else {
      of_class[piece[i]] = component[i];
    }
  }
  std::fill(parts.classes.begin(), parts.classes.end(), 0);
  for (const std::int64_t c : of_class) ++parts.classes[c];
  Rounds(ctx, a, piece, parts).run();
  number_pieces(piece, component, closed.count, parts);
  return parts;
}

void place_rows(const Context& ctx, const solver::LocalTask& task, const LlePartition& parts,
                const std::vector<std::int64_t>& piece, std::vector<double>& embedding) {
  const std::int64_t dim = task.dim;
  for (const std::vector<Point>& rows : parts.rounds) {
    core::parallel_for(ctx, (std::ssize(rows) + kPlacedRows - 1) / kPlacedRows, [&](std::int64_t part, int /*worker*/) {
      solver::Placer placer(task.table, task.k, task.reg);
      for (std::int64_t r = part * kPlacedRows; r < std::min(std::ssize(rows), (part + 1) * kPlacedRows); ++r) {
        const Point row = rows[r];
        core::widen_rows(task.table, row, row + 1, placer.row());
        for (std::int64_t j = 0; j < task.k; ++j) {
          const Point id = task.ids[row * task.k + j];
          if (piece[id] == piece[row] && parts.round[id] < parts.round[row]) placer.add(id);
        }
        if (!placer.place(embedding.data(), dim, embedding.data() + row * dim)) {
          throw Error(ErrorCode::bad_data, fmt::format("reg: is {}, but the neighbors of row {} do not determine its "
                                                       "weights; a larger share does",
                                                       task.reg, row));
        }
      }
    });
  }
}

}  // namespace vicinal::ops

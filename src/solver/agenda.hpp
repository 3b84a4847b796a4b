// The parts of a dissection: who halves which when, and the tree that they become. See dissection.cpp.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <queue>
#include <utility>
#include <vector>

#include "solver/ordering.hpp"

namespace vicinal::solver {

/// A part of the order, which becomes its separator, or stays as a leaf.
struct Part {
  Point begin = 0;
  Point end = 0;
  std::int32_t parent = -1;

  [[nodiscard]] Point size() const noexcept { return end - begin; }
};

/// How many points of a part are left and right of its separator; without any on a side it stays in one piece.
struct Split {
  Point left = 0;
  Point right = 0;
};
/// Leaves of part i what is its separator, and adds the others, if it was split.
void add_parts(std::vector<Part>& parts, std::size_t i, const Split& split);

/// The nodes of the tree in the order of their points, which has children before parents; parts without points are
/// none. `within[i]`, where there are any: what part i is made of, a tree or several.
std::vector<Dissection::Node> nodes_of(const std::vector<Part>& parts,
                                       const std::vector<std::vector<Dissection::Node>>& within);

/// The parts of a dissection as workers come to them, the largest first. Their numbers tell who came when, and are not
/// seen in the tree.
class Agenda {
 public:
  explicit Agenda(Point n);

  struct Entry {
    std::size_t number = 0;
    Part part;
  };
  /// The next part, for which it waits while others may add one; false: none will come. Polls for cancellation.
  bool take(const Context& ctx, Entry& entry);
  /// What was taken has been halved, or stays as it is.
  void put(const Entry& entry, const Split& split);
  /// What was taken has become these nodes.
  void put(const Entry& entry, std::vector<Dissection::Node> nodes);
  /// What was put as it is has become these nodes after all. For several entries at once.
  void replace(const Entry& entry, std::vector<Dissection::Node> nodes) { within_[entry.number] = std::move(nodes); }
  /// Nobody takes any more.
  void stop();
  /// Points that have their place.
  std::int64_t done();
  /// When all is done.
  [[nodiscard]] std::vector<Dissection::Node> nodes() const { return nodes_of(parts_, within_); }

 private:
  void leave(Point points);

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Part> parts_;
  std::vector<std::vector<Dissection::Node>> within_;
  std::priority_queue<std::pair<Point, std::size_t>> waiting_;  // sizes and numbers
  std::int64_t done_ = 0;
  int busy_ = 0;
  bool stopped_ = false;
};

}  // namespace vicinal::solver

// What is known of the components below each child of a kd-tree. In the late rounds of Boruvka's method components are
// few and large, and most boxes hold many rows of one component, the MAIN one, and few others. Rows of the main
// component may have edges to the others alone, so their box and their least core key are kept, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/density/inner_boxes.hpp"
#include "cpu/density/node_boxes.hpp"
#include "cpu/density/other_rows.hpp"
#include "cpu/density/tree_parts.hpp"
#include "cpu/nearest/tree/keys.hpp"
#include "cpu/nearest/tree/tree.hpp"

namespace vicinal::cpu {

class ComponentBoxes {
 public:
  /// Borrows all; `parts` are those of the tree. Rows that `inner` leaves out are below no child.
  ComponentBoxes(const Context& ctx, const Growth& growth, const Tree& tree, const TreeKeys& keys,
                 const InnerBoxes& inner, std::span<const Below> parts);
  static std::uint64_t bytes(const TableView& table, std::uint64_t threads);

  /// Components have changed, or the rows that are left out. O(n), on all threads.
  void update();

  /// The component of all rows below a child, or negative: there are several, or no rows.
  [[nodiscard]] std::int64_t label(std::int64_t child) const { return of(child).label; }
  /// The least core key below a child.
  [[nodiscard]] double core(std::int64_t child) const { return of(child).core; }

  /// Whether rows of a component, with core keys of at least `core`, may have an edge of use to a row of another
  /// component below a child, by the key of the box of those rows, or of a box around them.
  [[nodiscard]] bool may_have(std::int64_t child, std::int64_t label, double core, double key) const {
    const Rows& rows = of(child);
    if (rows.label == label) return false;
    const double core_of_others = rows.main == label ? rows.core_of_others : rows.core;
    return growth_.key(core, core_of_others, key) <= growth_.edges.limit(label);
  }
  /// A bit for each child of a node that rows between `low` and `high` may have an edge of use into, as above, and the
  /// keys. Children whose key is above `limit`, a pair key, have none.
  std::uint32_t useful(std::int64_t node, const double* low, const double* high, std::int64_t label, double core,
                       double limit, double* keys) const;

 private:
  static constexpr std::int64_t kNoRows = -2;  // instead of a label; -1: several
  struct Rows {
    std::int64_t label = -1;
    std::int64_t main = -1;  // a component that has many of them, or -1; any choice is right
    double core = kInfinity;
    double core_of_others = kInfinity;  // of those that are not of `main`
  };
  [[nodiscard]] const Rows& of(std::int64_t child) const { return rows_[static_cast<std::size_t>(child)]; }
  void update_leaf(const Below& below, GrowingBox& others);
  void update_node(std::int64_t child, GrowingBox& others);

  const Context& ctx_;
  const Growth& growth_;
  const Tree& tree_;
  const TreeKeys& keys_;
  const InnerBoxes& inner_;
  std::span<const Below> parts_;
  bool keeps_all_;                   // no row is ever left out
  std::vector<Rows> rows_;           // [children]
  std::vector<GrowingBox> scratch_;  // of each thread
  NodeBoxes others_;                 // of the rows that are not of `main`; empty in many columns
};

}  // namespace vicinal::cpu

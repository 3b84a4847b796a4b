// The embedding half of the fake plug-in (plugin.cpp): the CPU's blocks, factor and vectors, behind the
// plug-in's functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dissect.hpp"
#include "formulas/lle/start.hpp"
#include "plugin/abi/lle.hpp"
#include "small.hpp"
#include "solver/factor.hpp"
#include "solver/ordering.hpp"
#include "solver/ritz.hpp"
#include "solver/smallest.hpp"
#include "solver/weights.hpp"

namespace vicinal::plugin {

class FakeLle {
 public:
  /// `table`: the task's rows, widened.
  FakeLle(LleTask& task, const std::vector<double>& table, std::uint64_t limit) : limit_(limit) {
    const TableView rows(table.data(), task.table.rows, task.table.cols);
    all_ = solver::local_rows(ctx_, {rows,
                                     {task.ids, static_cast<std::size_t>(task.table.rows * task.k)},
                                     task.k,
                                     task.dim,
                                     static_cast<LleVariant>(task.variant),
                                     task.reg});
    for (std::int64_t e = 0; e < static_cast<std::int64_t>(all_.values.size()); ++e) {
      if (e % all_.width == 0) continue;
      const double weight = all_.values[e] < 0 ? -all_.values[e] : all_.values[e];
      if (task.variant == static_cast<std::int32_t>(LleVariant::standard)) {
        task.largest_weight = std::max(task.largest_weight, weight);
      }
    }
  }

  void take(LleTaken& piece) {
    factor_.reset();
    symbolic_ = {};
    a_ = solver::renumbered(ctx_, all_, {piece.rows, piece.rows + piece.n});
    in_ = solver::incidence_of(ctx_, a_);
    piece.block_rows = a_.rows();
    piece.width = a_.width;
    piece.norm = solver::norm_bound(ctx_, a_, in_);
  }

  void fetch(const LleBlocks& to) const {
    std::copy(a_.cols.begin(), a_.cols.end(), to.cols);
    std::copy(a_.first.begin(), a_.first.end(), to.first);
    std::copy(a_.values.begin(), a_.values.end(), to.values);
  }

  void dissect(LleParts& parts) const { fake_dissection(a_, in_, parts); }

  void factor(LleFactor& task) {
    factor_.reset();
    if (symbolic_.nodes.empty()) read_tree(task.tree);
    const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(symbolic_.panel.back()) * sizeof(double);
    if (bytes >= limit_) {
      throw Error(ErrorCode::over_memory, "lle: the factor needs " + std::to_string(bytes) + " bytes of device memory");
    }
    factor_ = std::make_unique<solver::Factor>(ctx_, a_, in_, symbolic_, solver::Pencil{task.shift, task.ground});
    task.bytes = bytes;
    task.negative = factor_->negative();
  }

  void step(const LleStep& step) {
    solver::Vectors& best = sets_[static_cast<int>(solver::Set::best)];
    solver::Vectors& next = sets_[static_cast<int>(solver::Set::next)];
    solver::Vectors& set = sets_[step.set];
    switch (step.work) {
      case kLleStart:
        best = solver::Vectors(a_.points, step.width);
        for (std::int64_t i = 0; i < best.rows; ++i) {
          for (std::int64_t c = 0; c < step.width; ++c) best.row(i)[c] = solver::first_entry(i, c);
        }
        return solver::remove_means(ctx_, best);
      case kLleSolve:
        return solve(set);
      case kLleGradient:
        next = solver::gradient(ctx_, a_, in_, best, {step.small, step.small + best.width});
        return;
      case kLleInner:
        return give(solver::inner(ctx_, set, next), step.small);
      case kLleSubtract:
        solver::subtract_product(ctx_, best, taken(step.small, best.width, next.width), next);
        return solver::remove_means(ctx_, next);
      case kLleMultiply:
        set = solver::product(ctx_, set, taken(step.small, set.width, step.width));
        return;
      case kLleTriangles:
        return give_stacked(solver::triangle_of(ctx_, set), step.small);
      case kLleRowTriangles:
        return give_stacked(solver::triangle_of(ctx_, a_, best), step.small);
      case kLleJoin:
        best = beside(best, next);
        return;
      case kLleFetch:
        for (std::int64_t i = 0; i < best.rows; ++i) std::copy_n(best.row(i), step.width, step.small + i * step.width);
        return;
      default:
        throw std::runtime_error("a step that there is none of");
    }
  }

 private:
  void read_tree(const LleTree& tree) {
    if (tree.count <= 0) throw std::runtime_error("a factor without a tree");
    const auto nodes = static_cast<std::size_t>(tree.count);
    symbolic_.children.resize(nodes);
    symbolic_.panel = {0};
    for (std::int32_t t = 0; t < tree.count; ++t) {
      const LleNode& node = tree.nodes[t];
      symbolic_.nodes.push_back({node.begin, node.end, node.parent});
      symbolic_.rows.emplace_back(tree.rows + tree.first_row[t], tree.rows + tree.first_row[t + 1]);
      if (node.parent >= 0) symbolic_.children[node.parent].push_back(t);
      symbolic_.panel.push_back(symbolic_.panel.back() + symbolic_.own(t) * (symbolic_.own(t) + symbolic_.below(t)));
      symbolic_.top.push_back(t);
    }
  }

  void solve(solver::Vectors& x) {
    if (factor_ == nullptr) throw std::runtime_error("a solve without a factor");
    solver::Vectors room(x.rows, (x.width + 7) / 8 * 8);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      std::fill_n(room.row(i), room.width, 0.0);
      std::copy_n(x.row(i), x.width, room.row(i));
    }
    factor_->solve(ctx_, room);
    for (std::int64_t i = 0; i < x.rows; ++i) std::copy_n(room.row(i), x.width, x.row(i));
    solver::remove_means(ctx_, x);
  }

  static void give_stacked(const solver::Small& small, double* to) {
    std::fill_n(to, kLleStacked * small.cols * small.cols, 0.0);
    give(small, to);
  }
  static solver::Vectors beside(const solver::Vectors& x, const solver::Vectors& y) {
    solver::Vectors both(x.rows, x.width + y.width);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      std::copy_n(y.row(i), y.width, std::copy_n(x.row(i), x.width, both.row(i)));
    }
    return both;
  }

  Context ctx_ = Context::cpu({.threads = 1});
  std::uint64_t limit_;
  solver::LocalRows all_;
  solver::LocalRows a_;
  solver::Incidence in_;
  solver::Symbolic symbolic_;
  std::unique_ptr<solver::Factor> factor_;
  solver::Vectors sets_[2];
};

}  // namespace vicinal::plugin

// See join.hpp. The area of a pair and the bound on its rounding mostly decide how the two lie: only where one may lie
// in the other, or nothing may be shared, are signs of determinants asked.
#include "geo/join.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "cpu/simd/overlap_kernels.hpp"
#include "geo/box_tree.hpp"
#include "geo/overlap.hpp"
#include "geo/relation.hpp"

namespace vicinal::geo {
namespace {

constexpr std::int64_t kChunk = 64;  // features of a task
constexpr double kSliver = 1e-9;     // of the smaller area: what may be rounding of the coordinates themselves

std::int64_t chunks_of(std::int64_t n) {
  return (n + kChunk - 1) / kChunk;
}

struct Worker {
  explicit Worker(const cpu::OverlapKernels& kernels) : area(kernels) {}

  OverlapArea area;
  RelationOf relation;
  std::vector<std::int64_t> ids;
};

std::vector<std::unique_ptr<Worker>> make_workers(const Context& ctx) {
  std::vector<std::unique_ptr<Worker>> workers;
  workers.reserve(static_cast<std::size_t>(ctx.threads()));
  for (int i = 0; i < ctx.threads(); ++i) {
    workers.push_back(std::make_unique<Worker>(cpu::overlap_kernels(ctx.isa())));
  }
  return workers;
}

/// What the layer's own area of a feature may be off by: some roundings of the box for each edge.
double area_error(const Layer& layer, std::int64_t i) {
  const Box& box = layer.boxes[static_cast<std::size_t>(i)];
  const auto runs = static_cast<double>(layer.first_run[static_cast<std::size_t>(i) + 1] -
                                        layer.first_run[static_cast<std::size_t>(i)]);
  const double extent = std::max(box.x1 - box.x0, box.y1 - box.y0);
  return 0x1p-49 * 16 * runs * (runs + 1) * extent * extent;
}

Overlap overlap_of(Worker& worker, const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  const double area_a = a.areas[static_cast<std::size_t>(i)];
  const double area_b = b.areas[static_cast<std::size_t>(j)];
  const SharedArea shared = worker.area(a, i, b, j);
  Overlap pair{i, j, RegionRelation::overlaps, shared.area, 0};
  if (shared.area > shared.error && shared.area < area_a - shared.error - area_error(a, i) &&
      shared.area < area_b - shared.error - area_error(b, j)) {
    return pair;
  }
  pair.relation = worker.relation(a, i, b, j);
  switch (pair.relation) {
    case RegionRelation::disjoint:
    case RegionRelation::touches:
      pair.area = 0;
      break;
    case RegionRelation::covered_by:
    case RegionRelation::within:
    case RegionRelation::equals:
      pair.area = area_a;
      break;
    case RegionRelation::covers:
    case RegionRelation::contains:
      pair.area = area_b;
      break;
    case RegionRelation::overlaps:
      pair.area = std::min({pair.area, area_a, area_b});
      break;
  }
  return pair;
}

}  // namespace

Overlaps join(const Context& ctx, const Layer& a, const Layer& b, const OverlapOptions& options) {
  const BoxTree tree(ctx, b.boxes);
  const std::int64_t tasks = chunks_of(a.size());
  const std::vector<std::unique_ptr<Worker>> workers = make_workers(ctx);
  const auto near = [&](std::int64_t i, Worker& worker) -> std::vector<std::int64_t>& {
    worker.ids.clear();
    tree.query(a.boxes[static_cast<std::size_t>(i)], worker.ids);
    return worker.ids;
  };
  std::atomic<std::int64_t> candidates{0};
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
    std::int64_t count = 0;
    for (std::int64_t i = task * kChunk; i < std::min(a.size(), (task + 1) * kChunk); ++i) {
      count += static_cast<std::int64_t>(near(i, *workers[static_cast<std::size_t>(worker)]).size());
    }
    candidates += count;
  });
  core::require_memory(ctx, static_cast<std::uint64_t>(candidates.load()) * 2 * sizeof(Overlap), "overlaps");
  std::vector<std::vector<Overlap>> found(static_cast<std::size_t>(tasks));
  std::atomic<std::int64_t> done{0};
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int number) {
    Worker& worker = *workers[static_cast<std::size_t>(number)];
    std::vector<Overlap>& pairs = found[static_cast<std::size_t>(task)];
    for (std::int64_t i = task * kChunk; i < std::min(a.size(), (task + 1) * kChunk); ++i) {
      std::vector<std::int64_t>& ids = near(i, worker);
      std::sort(ids.begin(), ids.end());
      for (const std::int64_t j : ids) {
        if (ctx.cancel_token().cancelled()) return;  // a pair may take milliseconds; parallel_for says so
        Overlap pair = overlap_of(worker, a, i, b, j);
        if (pair.relation == RegionRelation::disjoint) continue;
        if (options.widths && pair.area > 0) {
          const double perimeter = worker.area.perimeter(a, i, b, j);
          if (perimeter > 0) pair.width = 2 * pair.area / perimeter;
        }
        pairs.push_back(pair);
      }
    }
    const std::int64_t now = ++done;
    if (number == 0) ctx.report("overlaps", static_cast<double>(now) / static_cast<double>(tasks));
  });
  ctx.check_cancelled();
  Overlaps result;
  result.candidates = candidates;
  result.areas_a = a.areas;
  result.areas_b = b.areas;
  std::size_t total = 0;
  for (const auto& pairs : found) total += pairs.size();
  result.pairs.reserve(total);
  for (auto& pairs : found) {
    result.pairs.insert(result.pairs.end(), pairs.begin(), pairs.end());
    std::vector<Overlap>().swap(pairs);
  }
  return result;
}

std::vector<char> groups_that_overlap(const Context& ctx, const Layer& layer, const std::vector<std::int64_t>& groups,
                                      std::int64_t count) {
  std::vector<char> flags(static_cast<std::size_t>(count), 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), 0);
  for (const std::int64_t group : groups) ++sizes[static_cast<std::size_t>(group)];
  const BoxTree tree(ctx, layer.boxes);
  const std::vector<std::unique_ptr<Worker>> workers = make_workers(ctx);
  core::parallel_for(ctx, chunks_of(layer.size()), [&](std::int64_t task, int number) {
    Worker& worker = *workers[static_cast<std::size_t>(number)];
    for (std::int64_t i = task * kChunk; i < std::min(layer.size(), (task + 1) * kChunk); ++i) {
      const auto group = static_cast<std::size_t>(groups[static_cast<std::size_t>(i)]);
      if (sizes[group] < 2) continue;
      worker.ids.clear();
      tree.query(layer.boxes[static_cast<std::size_t>(i)], worker.ids);
      for (const std::int64_t j : worker.ids) {
        if (j <= i || groups[static_cast<std::size_t>(j)] != groups[static_cast<std::size_t>(i)]) continue;
        if (ctx.cancel_token().cancelled()) return;
        const SharedArea shared = worker.area(layer, i, layer, j);
        const double smaller =
            std::min(layer.areas[static_cast<std::size_t>(i)], layer.areas[static_cast<std::size_t>(j)]);
        if (shared.area > std::max(shared.error, kSliver * smaller)) {
          std::atomic_ref<char>(flags[group]).store(1, std::memory_order_relaxed);
        }
      }
    }
  });
  ctx.check_cancelled();
  return flags;
}

/// The integral of the winding number's square is that of itself where it is 0 or 1 everywhere, and nowhere else.
std::vector<std::int64_t> self_overlapping(const Context& ctx, const Layer& layer) {
  std::vector<char> flags(static_cast<std::size_t>(layer.size()), 0);
  const std::vector<std::unique_ptr<Worker>> workers = make_workers(ctx);
  core::parallel_for(ctx, chunks_of(layer.size()), [&](std::int64_t task, int number) {
    Worker& worker = *workers[static_cast<std::size_t>(number)];
    for (std::int64_t i = task * kChunk; i < std::min(layer.size(), (task + 1) * kChunk); ++i) {
      if (ctx.cancel_token().cancelled()) return;
      const double area = layer.areas[static_cast<std::size_t>(i)];
      const SharedArea squared = worker.area(layer, i, layer, i);
      const double slack = squared.error + area_error(layer, i) + kSliver * std::fabs(area);
      flags[static_cast<std::size_t>(i)] = std::fabs(squared.area - area) > slack ? 1 : 0;
    }
  });
  ctx.check_cancelled();
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) ids.push_back(static_cast<std::int64_t>(i));
  }
  return ids;
}

}  // namespace vicinal::geo

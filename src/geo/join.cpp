// See join.hpp. The area of a pair and the bound on its rounding mostly decide how the two lie: only where one may lie
// in the other, or nothing may be shared, are signs of determinants asked.
#include "geo/join.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "geo/box_tree.hpp"
#include "geo/overlap.hpp"
#include "geo/relation.hpp"
#include "simd/overlap_kernels.hpp"

namespace vicinal::geo {
namespace {

constexpr std::int64_t kChunk = 64;  // features of a task
constexpr std::uint64_t kCandidateBytes = 2 * (sizeof(Overlap) + sizeof(std::int64_t));
constexpr double kSliver = 1e-9;  // of the smaller area: what may be rounding of the coordinates themselves

std::int64_t chunks_of(std::int64_t n) {
  return (n + kChunk - 1) / kChunk;
}

std::vector<std::unique_ptr<PairJudge>> make_workers(const Context& ctx) {
  std::vector<std::unique_ptr<PairJudge>> workers;
  workers.reserve(static_cast<std::size_t>(ctx.threads()));
  for (int i = 0; i < ctx.threads(); ++i) workers.push_back(std::make_unique<PairJudge>(ctx));
  return workers;
}

double area_error_of(const Layer& layer, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  return area_error(layer.boxes[at], layer.first_run[at + 1] - layer.first_run[at]);
}

}  // namespace

PairJudge::PairJudge(const Context& ctx) : area(cpu::overlap_kernels(ctx.isa())) {}

Overlap PairJudge::operator()(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j, bool width) {
  Overlap pair = without_width(a, i, b, j);
  if (width && pair.area > 0) {
    const double perimeter = area.perimeter(a, i, b, j);
    if (perimeter > 0) pair.width = 2 * pair.area / perimeter;
  }
  return pair;
}

Overlap PairJudge::without_width(const Layer& a, std::int64_t i, const Layer& b, std::int64_t j) {
  const double area_a = a.areas[static_cast<std::size_t>(i)];
  const double area_b = b.areas[static_cast<std::size_t>(j)];
  const SharedArea shared = area(a, i, b, j);
  Overlap pair{i, j, RegionRelation::overlaps, shared.area, 0};
  if (plainly_overlap(shared.area, shared.error, area_a - area_error_of(a, i), area_b - area_error_of(b, j))) {
    return pair;
  }
  pair.relation = relation(a, i, b, j);
  pair.area = area_by(pair.relation, pair.area, area_a, area_b);
  return pair;
}

Overlaps join(const Context& ctx, const Layer& a, const Layer& b, const OverlapOptions& options) {
  const BoxTree tree(ctx, b.boxes);
  const std::int64_t tasks = chunks_of(a.size());
  const std::vector<std::unique_ptr<PairJudge>> workers = make_workers(ctx);
  struct Near {
    std::vector<std::int64_t> ids;      // of features of b, ascending for each of a
    std::vector<std::int64_t> offsets;  // [features of the task + 1]
  };
  std::vector<Near> near(static_cast<std::size_t>(tasks));
  std::atomic<std::int64_t> candidates{0};
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int /*worker*/) {
    Near& own = near[static_cast<std::size_t>(task)];
    own.offsets.push_back(0);
    for (std::int64_t i = task * kChunk; i < std::min(a.size(), (task + 1) * kChunk); ++i) {
      tree.query(a.boxes[static_cast<std::size_t>(i)], own.ids);
      std::sort(own.ids.begin() + own.offsets.back(), own.ids.end());
      own.offsets.push_back(static_cast<std::int64_t>(own.ids.size()));
    }
    const std::int64_t before = candidates.fetch_add(own.offsets.back());
    core::require_memory(ctx, static_cast<std::uint64_t>(before + own.offsets.back()) * kCandidateBytes, "overlaps");
  });
  std::vector<std::vector<Overlap>> found(static_cast<std::size_t>(tasks));
  std::atomic<std::int64_t> done{0};
  core::parallel_for(ctx, tasks, [&](std::int64_t task, int number) {
    PairJudge& worker = *workers[static_cast<std::size_t>(number)];
    std::vector<Overlap>& pairs = found[static_cast<std::size_t>(task)];
    const Near own = std::move(near[static_cast<std::size_t>(task)]);
    pairs.reserve(own.ids.size());
    for (std::int64_t i = task * kChunk; i < std::min(a.size(), (task + 1) * kChunk); ++i) {
      const auto at = static_cast<std::size_t>(i - task * kChunk);
      for (std::int64_t k = own.offsets[at]; k < own.offsets[at + 1]; ++k) {
        const std::int64_t j = own.ids[static_cast<std::size_t>(k)];
        if (ctx.cancel_token().cancelled()) return;  // a pair may take milliseconds; parallel_for says so
        const Overlap pair = worker(a, i, b, j, options.widths);
        if (pair.relation != RegionRelation::disjoint) pairs.push_back(pair);
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

std::int64_t decide(const Context& ctx, const Layer& a, const Layer& b, std::vector<Overlap>& pairs,
                    RegionRelation undecided, const OverlapOptions& options) {
  std::vector<std::int64_t> left;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    if (pairs[k].relation == undecided) left.push_back(static_cast<std::int64_t>(k));
  }
  const auto count = static_cast<std::int64_t>(left.size());
  const std::vector<std::unique_ptr<PairJudge>> workers = make_workers(ctx);
  core::parallel_for(ctx, chunks_of(count), [&](std::int64_t task, int number) {
    for (std::int64_t k = task * kChunk; k < std::min(count, (task + 1) * kChunk); ++k) {
      if (ctx.cancel_token().cancelled()) return;
      Overlap& pair = pairs[static_cast<std::size_t>(left[static_cast<std::size_t>(k)])];
      pair = (*workers[static_cast<std::size_t>(number)])(a, pair.a, b, pair.b, options.widths);
    }
  });
  ctx.check_cancelled();
  return count;
}

namespace {

/// Whether features i and j of a layer share area, by more than rounding.
bool share_area(PairJudge& judge, const Layer& layer, std::int64_t i, std::int64_t j, double& area) {
  const SharedArea shared = judge.area(layer, i, layer, j);
  const double smaller = std::min(layer.areas[static_cast<std::size_t>(i)], layer.areas[static_cast<std::size_t>(j)]);
  area = std::min(shared.area, smaller);
  return shared.area > std::max(shared.error, kSliver * smaller);
}

}  // namespace

std::vector<char> groups_that_overlap(const Context& ctx, const Layer& layer, const std::vector<std::int64_t>& groups,
                                      std::int64_t count) {
  std::vector<char> flags(static_cast<std::size_t>(count), 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), 0);
  for (const std::int64_t group : groups) ++sizes[static_cast<std::size_t>(group)];
  const BoxTree tree(ctx, layer.boxes);
  const std::vector<std::unique_ptr<PairJudge>> workers = make_workers(ctx);
  core::parallel_for(ctx, chunks_of(layer.size()), [&](std::int64_t task, int number) {
    PairJudge& worker = *workers[static_cast<std::size_t>(number)];
    for (std::int64_t i = task * kChunk; i < std::min(layer.size(), (task + 1) * kChunk); ++i) {
      const auto group = static_cast<std::size_t>(groups[static_cast<std::size_t>(i)]);
      if (sizes[group] < 2) continue;
      worker.ids.clear();
      tree.query(layer.boxes[static_cast<std::size_t>(i)], worker.ids);
      for (const std::int64_t j : worker.ids) {
        if (j <= i || groups[static_cast<std::size_t>(j)] != groups[static_cast<std::size_t>(i)]) continue;
        if (ctx.cancel_token().cancelled()) return;
        double area = 0;
        if (share_area(worker, layer, i, j, area)) {
          std::atomic_ref<char>(flags[group]).store(1, std::memory_order_relaxed);
        }
      }
    }
  });
  ctx.check_cancelled();
  return flags;
}

LayerOverlap overlaps_within(const Context& ctx, const Layer& layer) {
  struct Pair {
    std::int64_t first;
    std::int64_t second;
    double area;
  };
  const BoxTree tree(ctx, layer.boxes);
  const std::vector<std::unique_ptr<PairJudge>> workers = make_workers(ctx);
  std::vector<std::vector<Pair>> found(static_cast<std::size_t>(chunks_of(layer.size())));
  std::atomic<std::uint64_t> count{0};
  core::parallel_for(ctx, chunks_of(layer.size()), [&](std::int64_t task, int number) {
    PairJudge& worker = *workers[static_cast<std::size_t>(number)];
    std::vector<Pair>& pairs = found[static_cast<std::size_t>(task)];
    for (std::int64_t i = task * kChunk; i < std::min(layer.size(), (task + 1) * kChunk); ++i) {
      const std::size_t before = pairs.size();
      worker.ids.clear();
      tree.query(layer.boxes[static_cast<std::size_t>(i)], worker.ids);
      std::sort(worker.ids.begin(), worker.ids.end());
      for (const std::int64_t j : worker.ids) {
        if (j <= i) continue;
        if (ctx.cancel_token().cancelled()) return;
        double area = 0;
        if (share_area(worker, layer, i, j, area)) pairs.push_back({i, j, area});
      }
      const std::uint64_t now = count += pairs.size() - before;
      core::require_memory(ctx, now * 2 * sizeof(Pair), "overlaps_within");
    }
  });
  ctx.check_cancelled();
  LayerOverlap result;
  std::vector<double> shared(static_cast<std::size_t>(layer.size()), 0);
  for (const std::vector<Pair>& pairs : found) {
    for (const Pair& pair : pairs) {
      ++result.pairs;
      shared[static_cast<std::size_t>(pair.first)] += pair.area;
      shared[static_cast<std::size_t>(pair.second)] += pair.area;
      if (!(pair.area > result.largest)) continue;
      result.largest = pair.area;
      result.first = pair.first;
      result.second = pair.second;
    }
  }
  for (std::size_t i = 0; i < shared.size(); ++i) {
    result.area += layer.areas[i];
    if (!(shared[i] > 0)) continue;
    ++result.features;
    result.covered += std::min(shared[i], layer.areas[i]);
  }
  return result;
}

/// The integral of the winding number's square is that of itself where it is 0 or 1 everywhere, and nowhere else.
std::vector<std::int64_t> self_overlapping(const Context& ctx, const Layer& layer) {
  std::vector<char> flags(static_cast<std::size_t>(layer.size()), 0);
  const std::vector<std::unique_ptr<PairJudge>> workers = make_workers(ctx);
  core::parallel_for(ctx, chunks_of(layer.size()), [&](std::int64_t task, int number) {
    PairJudge& worker = *workers[static_cast<std::size_t>(number)];
    for (std::int64_t i = task * kChunk; i < std::min(layer.size(), (task + 1) * kChunk); ++i) {
      if (ctx.cancel_token().cancelled()) return;
      const double area = layer.areas[static_cast<std::size_t>(i)];
      const SharedArea squared = worker.area(layer, i, layer, i);
      const double slack = squared.error + area_error_of(layer, i) + kSliver * std::fabs(area);
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

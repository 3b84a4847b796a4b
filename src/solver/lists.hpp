// Lists of points side by side, as all threads make them: each task the lists of a range, put together in their order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "solver/rows.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

struct Lists {
  core::RawVector<std::int64_t> first;  ///< [lists + 1]
  core::RawVector<Point> items;

  [[nodiscard]] Point size() const noexcept { return static_cast<Point>(first.size()) - 1; }
  [[nodiscard]] const Point* begin(Point list) const noexcept { return items.data() + first[list]; }
  [[nodiscard]] const Point* end(Point list) const noexcept { return items.data() + first[list + 1]; }
};

/// make(list, worker, items): appends the items of one of `count` lists. Every list is made once.
template <class Make>
Lists lists_of(const Context& ctx, Point count, const Make& make) {
  constexpr std::int64_t kTaskLists = 256;
  const std::int64_t tasks = (count + kTaskLists - 1) / kTaskLists;
  std::vector<std::vector<Point>> parts(static_cast<std::size_t>(tasks));
  Lists lists;
  lists.first.resize(static_cast<std::size_t>(count) + 1);
  const auto for_each_list = [&](const auto& body) {
    core::parallel_for(ctx, tasks, [&](std::int64_t task, int worker) {
      const auto end = static_cast<Point>(std::min<std::int64_t>(count, (task + 1) * kTaskLists));
      body(task, worker, static_cast<Point>(task * kTaskLists), end);
    });
  };
  for_each_list([&](std::int64_t task, int worker, Point begin, Point end) {
    for (Point list = begin; list < end; ++list) {
      lists.first[list] = std::ssize(parts[task]);
      make(list, worker, parts[task]);
    }
  });
  std::vector<std::int64_t> before(static_cast<std::size_t>(tasks) + 1, 0);
  for (std::int64_t task = 0; task < tasks; ++task) before[task + 1] = before[task] + std::ssize(parts[task]);
  lists.first.back() = before.back();
  lists.items.resize(static_cast<std::size_t>(before.back()));
  for_each_list([&](std::int64_t task, int /*worker*/, Point begin, Point end) {
    for (Point list = begin; list < end; ++list) lists.first[list] += before[task];
    std::copy(parts[task].begin(), parts[task].end(), lists.items.begin() + before[task]);
    std::vector<Point>().swap(parts[task]);
  });
  return lists;
}

}  // namespace vicinal::solver

// The walk of 32 queries at a time through a tree (group.cu), for queries that lie together.
#pragma once

#include <cstdint>

#include "cuda/base/session.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

struct Walk;
struct ListTask;

inline constexpr int kMaxGroupColumns = 8;
inline constexpr std::int64_t kMaxGroupNeighbors = 32;

/// Starts the k lists of a launch whose queries are in the order of the leaves; metrics euclidean and sqeuclidean, at
/// most kMaxGroupColumns columns and kMaxGroupNeighbors neighbors. Answers are those of the walk of single queries, bit
/// for bit.
void walk_in_groups(const Engine& engine, const Walk& walk, const ListTask& task);

}  // namespace vicinal::cuda

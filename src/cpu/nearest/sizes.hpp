// How the work of a search (search.hpp) is divided, before it begins: the rows of a block and of the sample, the
// queries of a round and of a task, and for few queries the parts of the table.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/nearest.hpp"
#include "cpu/nearest/screen.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

inline constexpr std::int64_t kGroupTiles = 4;  // tiles of queries of one parallel task
inline constexpr std::int64_t kWaitingRowBytes = 16;

/// Sizes that follow from the task alone, so that nothing about the machine can show in a statistic.
struct Sizes {
  std::int64_t block;   // rows of a block
  std::int64_t batch;   // queries of a round
  std::int64_t group;   // queries of a parallel task
  std::int64_t sample;  // rows of the sample; 0: none

  Sizes(const kernels::NearestTask& task, const SimdKernels& simd, const std::vector<ScreenType>& screens);
};

/// Whether a sample of rows gives each query its first limit.
bool has_limit_from_sample(const kernels::NearestTask& task);

/// Too few queries to keep every worker busy: the table is divided among them instead.
bool splits_rows(const Context& ctx, const kernels::NearestTask& task, const Sizes& sizes, bool screened);

/// Of keys that read the table's memory, rows are found when they are ranked. Others are made from the table: all rows
/// of a block beforehand, or where few of them will be ranked, each as it is.
bool ranks_single_rows(const kernels::NearestTask& task, bool screened);

/// Whether parts of the table are searched for all queries (`task` keeps packed rows), by how many at once.
std::int64_t parts_of(const kernels::NearestTask& task, const Sizes& sizes);

/// Rows of each part, of all queries together, whose keys may wait (waiting.cpp); 0: none wait.
std::int64_t waiting_rows(const kernels::NearestTask& task, const Sizes& sizes);
/// Bytes that they take with their bounds.
std::uint64_t waiting_bytes(const kernels::NearestTask& task, const Sizes& sizes);

}  // namespace vicinal::cpu

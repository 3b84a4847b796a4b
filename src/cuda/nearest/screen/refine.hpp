// Between two screens: how near the k-th of the rows seen so far is, by the exact key of a few of them, and hence which
// rows still matter; and after the last: the exact order of what is left (refine.cu).
#pragma once

#include "cuda/nearest/direct.hpp"
#include "cuda/nearest/screen/pack.hpp"
#include "cuda/nearest/screen/screen.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// Whether a block's shared memory has room for the rows that a limit of k neighbors needs.
bool can_refine(const Engine& engine, int d, int k);
/// From what screen_best left of a sample, the first `tiles` tiles, to the first thresholds.
void seed(const Engine& engine, const Rows& table, const PackedTable& packed, PackedQueries& queries, int k,
          const float* best, int tiles, int parts);
/// From the survivors so far to tighter thresholds; survivors below them are dropped. Queries whose list overflowed are
/// marked, and their lists go on with what was kept.
void tighten(const Engine& engine, const Rows& table, const Chosen& chosen, PackedQueries& queries, int k);
/// Thresholds that follow from limits known already: of queries that are screened again.
void resume(const Engine& engine, PackedQueries& queries, const double* limits);
/// Thresholds of queries that look for all rows whose key is at most `largest_key`.
void aim(const Engine& engine, PackedQueries& queries, double largest_key);

/// The queries that could not be answered: their number (in device memory, added to), numbers and limits.
struct Unanswered {
  std::uint32_t* count;
  std::int64_t* queries;
  double* limits;
};
/// The answers of every query that is not marked, into the rows `outputs` names (null: query by query).
void finish(const Engine& engine, const Rows& table, const Chosen& chosen, PackedQueries& queries, const KLists& lists,
            const std::int64_t* outputs, unsigned long long* survivors, const Unanswered& unanswered);
/// The same of queries that look for all rows within a key: counts are added to, keys and ids kept where the task has
/// room for them, in no order.
void collect(const Engine& engine, const Rows& table, const Chosen& chosen, PackedQueries& queries,
             const DirectTask& task, const std::int64_t* outputs, unsigned long long* survivors,
             const Unanswered& unanswered);

}  // namespace vicinal::cuda

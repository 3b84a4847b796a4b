// Lists of few queries, formed from the table's rows as they lie: the table is read once, and nothing is packed.
#pragma once

#include <cstdint>

#include "cuda/nearest/select.hpp"
#include "cuda/nearest/task.hpp"

namespace vicinal::cuda {

/// Whether the k nearest of m queries of a search are found in this way.
bool few_serve(const Search& search, std::int64_t m, std::int64_t k);
/// Whether m of them meet a table that lies on the device by products of tf32.
bool few_multiply(const Engine& engine, const Rows& table, std::int64_t m);
/// Bytes of scratch; `rows`: of a block of the table.
std::uint64_t few_bytes(std::int64_t m, std::int64_t d, std::int64_t k, std::int64_t rows);

/// Meets all queries with all rows of the table, in blocks of at most `rows`. Lists without `sizes` are new, and put
/// in order at the end, with the distances that are reported; else they go on, as those of `take_candidates`. Writes
/// search.not_finite where that is asked for.
void few_pass(const Engine& engine, const Search& search, const RunningLists& lists, std::int64_t rows);

}  // namespace vicinal::cuda

// The papers' selections on the device. Of scores (float32, larger is nearer) or of keys (float64, smaller is nearer).
#pragma once

#include <cstdint>

#include "cuda/nearest/papers/pairs.hpp"

namespace vicinal::cuda::papers {

/// The first rows by score of each query: rows [queries, k] in no order of equal scores. -infinity is never chosen:
/// there are k other scores. Scores are as before afterwards.
struct ScoreMatrix {
  float* scores = nullptr;  ///< [queries, n]
  std::int64_t queries = 0;
  std::int64_t n = 0;
};

/// GS, for small k. `winners`: [queries, chunks_of(n)] scratch.
struct ChunkWinner {
  float score;
  std::int64_t row;
};
std::int64_t chunks_of(std::int64_t n);
void select_by_kmin(const Engine& engine, const ScoreMatrix& matrix, std::int64_t k, ChunkWinner* winners,
                    std::int64_t* rows);

/// GS, for large k. `pairs`: [queries, sorted_size(n)] scratch.
struct ScoredRow {
  float score;
  std::uint32_t row;
};
std::int64_t sorted_size(std::int64_t n);
void select_by_bitonic(const Engine& engine, const ScoreMatrix& matrix, std::int64_t k, ScoredRow* pairs,
                       std::int64_t* rows);

/// Lists in the making, whose inner side is the query: entry r of query q is at [r * queries + q].
struct ThreadLists {
  double* keys = nullptr;
  std::int64_t* ids = nullptr;
  std::int64_t* sizes = nullptr;  ///< [queries], 0 at first
  std::int64_t queries = 0;
  std::int64_t k = 0;
};
/// Garcia and the LLE paper: one thread a query takes in the keys of rows first, first + 1, ... one by one.
void insert_keys(const Engine& engine, const KeyMatrix& keys, std::int64_t rows, std::int64_t first,
                 const ThreadLists& lists);
/// To [queries, k].
void gather_lists(const Engine& engine, const ThreadLists& from, double* keys, std::int64_t* ids);

/// Kato and Hosino: one block a query, lanes that buffer, one heap. keys: [queries, n]. Lists are left in no order.
void select_by_block_heap(const Engine& engine, const double* keys, std::int64_t queries, std::int64_t n,
                          std::int64_t k, double* list_keys, std::int64_t* list_ids);

/// The LOF paper: one block a query moves a threshold until k to kMaxPass k keys pass, which then go through a heap.
/// Lists are left in no order.
inline constexpr std::int64_t kMaxPass = 3;
void select_by_filter(const Engine& engine, const double* keys, std::int64_t queries, std::int64_t n,
                      const double* sequence, std::int64_t sequence_size, std::int64_t k, double* list_keys,
                      std::int64_t* list_ids);

}  // namespace vicinal::cuda::papers

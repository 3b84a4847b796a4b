// k-min search (the GS paper): one block a query. In each chunk of 1024 rows elements meet in pairs, i and i + half,
// until the nearest of the chunk is left; the winners of all chunks play again for the nearest of all. It is taken out,
// and only its own chunk plays again. Cost: n comparisons, then 1024 and the number of chunks for each neighbor.
#include "cuda/nearest/papers/selection.hpp"

namespace vicinal::cuda::papers {
namespace {

constexpr int kGameThreads = 512;  // half a chunk, as each game has two players
constexpr std::int64_t kChunk = 2 * kGameThreads;

__device__ bool beats(const ChunkWinner& a, const ChunkWinner& b) {
  return a.score > b.score;
}

// The rounds of a tournament among kGameThreads players in shared memory; the winner comes first.
__device__ ChunkWinner play(ChunkWinner mine, ChunkWinner* players) {
  players[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kGameThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half && beats(players[threadIdx.x + half], players[threadIdx.x])) {
      players[threadIdx.x] = players[threadIdx.x + half];
    }
    __syncthreads();
  }
  const ChunkWinner winner = players[0];
  __syncthreads();
  return winner;
}

__device__ ChunkWinner play_chunk(const float* scores, std::int64_t n, std::int64_t chunk, ChunkWinner* players) {
  const std::int64_t first = chunk * kChunk + threadIdx.x;
  ChunkWinner mine = {-INFINITY, first};
  if (first < n) mine.score = scores[first];
  const std::int64_t second = first + kGameThreads;
  if (second < n && scores[second] > mine.score) mine = {scores[second], second};
  return play(mine, players);
}

__global__ void kmin_kernel(ScoreMatrix matrix, std::int64_t k, std::int64_t chunks, ChunkWinner* all_winners,
                            std::int64_t* all_rows) {
  __shared__ ChunkWinner players[kGameThreads];
  for (std::int64_t q = blockIdx.x; q < matrix.queries; q += gridDim.x) {
    float* scores = matrix.scores + q * matrix.n;
    ChunkWinner* winners = all_winners + q * chunks;
    std::int64_t* rows = all_rows + q * k;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const ChunkWinner winner = play_chunk(scores, matrix.n, chunk, players);
      if (threadIdx.x == 0) winners[chunk] = winner;
    }
    for (std::int64_t rank = 0; rank < k; ++rank) {
      __syncthreads();
      ChunkWinner mine = {-INFINITY, 0};
      for (std::int64_t chunk = threadIdx.x; chunk < chunks; chunk += kGameThreads) {
        if (beats(winners[chunk], mine)) mine = winners[chunk];
      }
      const ChunkWinner best = play(mine, players);
      if (threadIdx.x == 0) {
        rows[rank] = best.row;
        scores[best.row] = -INFINITY;
      }
      __syncthreads();
      const ChunkWinner next = play_chunk(scores, matrix.n, best.row / kChunk, players);
      if (threadIdx.x == 0) winners[best.row / kChunk] = next;
      // The score taken out is kept where its rank is, in the bits of the row that are not needed.
      if (threadIdx.x == 0) rows[rank] = best.row | static_cast<std::int64_t>(__float_as_uint(best.score)) << 32;
    }
    __syncthreads();
    for (std::int64_t rank = threadIdx.x; rank < k; rank += kGameThreads) {
      const std::int64_t packed = rows[rank];
      const std::int64_t row = packed & 0xffffffff;
      scores[row] = __uint_as_float(static_cast<unsigned>(static_cast<unsigned long long>(packed) >> 32));
      rows[rank] = row;
    }
    __syncthreads();
  }
}

}  // namespace

std::int64_t chunks_of(std::int64_t n) {
  return (n + kChunk - 1) / kChunk;
}

void select_by_kmin(const Engine& engine, const ScoreMatrix& matrix, std::int64_t k, ChunkWinner* winners,
                    std::int64_t* rows) {
  const auto grid = static_cast<unsigned>(matrix.queries < 65535 ? matrix.queries : 65535);
  kmin_kernel<<<grid, kGameThreads, 0, engine.stream>>>(matrix, k, chunks_of(matrix.n), winners, rows);
  check_launch("k-min search");
}

}  // namespace vicinal::cuda::papers

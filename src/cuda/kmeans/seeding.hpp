// First centers being drawn on the device (contract clause 12): the rows' least keys, their masses, and the tree of
// sums that a draw goes down. Nothing but numbers of rows comes to the host.
#pragma once

#include <cstdint>

#include "cuda/kmeans/cluster.hpp"
#include "formulas/kmeans/masses.hpp"

namespace vicinal::cuda::kmeans {

inline constexpr int kMaxTrials = 24;    ///< 2 + floor(ln k) is 18 at most
inline constexpr int kTrialsAtOnce = 8;  ///< rows of one product

/// What the screen knows of a row, in units of its scale (seeding_screen.cu).
struct alignas(16) SeedFacts {
  float scale;   ///< of its bytes
  float square;  ///< its squared length, rounded to bytes
  float error;   ///< not below what rounding moved it by
  float reach;   ///< of a row beside the others; here it is not used
};

/// What steps hand to each other.
struct SeedState {
  std::int64_t drawn[kMaxTrials];  ///< rows of the next step
  int winner;                      ///< trial whose changes the keys do not have yet
};

/// Arrays in device memory. A slot is a trial; a row's least key after trial t is in `tried` where its bit in `changed`
/// says so, else in `keys`.
struct SeedView {
  std::int64_t n = 0;
  std::int64_t d = 0;
  const double* weights = nullptr;  ///< [n], or null
  core::MassTree tree;
  int slots = 1;
  double* keys = nullptr;            ///< [n]
  double* tried = nullptr;           ///< [trials][n]
  std::uint32_t* changed = nullptr;  ///< [(n + 31) / 32][slots]
  double* sums = nullptr;            ///< [tree.nodes][slots]
  SeedState* state = nullptr;
  // The screen's; of k-means++.
  bool screened = false;
  int steps = 0;                    ///< products of 32 columns
  double square_scale = 0;          ///< of keys
  uint4* packed = nullptr;          ///< [rows / 16][steps][32 lanes], rows padded to chunks
  SeedFacts* facts = nullptr;       ///< [rows padded to chunks]
  float* reaches = nullptr;         ///< [rows padded to chunks] how near a center must be to change a row (reach_of)
  std::int32_t* winners = nullptr;  ///< [n]; of k-means||
};

/// What one step of k-means++ is told.
struct SeedStep {
  int trials = 0;
  int next_trials = 0;           ///< 0: there is no next step
  const double* next = nullptr;  ///< its draws
  std::int64_t* chosen = nullptr;
  bool first = false;      ///< there is no center yet
  bool backwards = false;  ///< begins where the step before ended, whose rows are still in the cache
};

inline constexpr int kSeedChunk = 1024;  ///< rows that a block takes
inline std::int64_t padded_rows(std::int64_t n) {
  return (n + kSeedChunk - 1) / kSeedChunk * kSeedChunk;
}

/// seeding_screen.cu: fills `packed` and `facts`; middle[d], power of two `scale`.
void pack_seeds(const Engine& engine, const Rows& rows, const SeedView& view, const double* middle, double scale);
/// seeding_step.cu
void choose_seed(const Engine& engine, const Rows& rows, const SeedView& view, const SeedStep& step);

class Seeding {
 public:
  /// At most `trials` draws for a center; 0: for k-means||. What is in `view` must outlive it.
  Seeding(const Engine& engine, const ClusterView& view, std::int64_t trials);

  void draw(const double* draws, std::int64_t count, std::int64_t* rows);
  void choose(const double* draws, std::int64_t trials, std::int64_t count, std::int64_t* rows);
  /// Every row has been given a fresh label among `count` centers.
  void merge(const ClusterView& view, std::int64_t count);
  /// The total; winners[n] unless null.
  double state(std::int32_t* winners);

  static std::uint64_t bytes(std::int64_t n, std::int64_t d, std::int64_t trials);

 private:
  void make_screen();
  void add_masses();

  const Engine& engine_;
  const ClusterView& clusters_;
  SeedView view_;
  std::int64_t centres_ = 0;
  bool backwards_ = false;
  Buffer<double> keys_;  // keys, tried, sums
  Buffer<std::uint32_t> changed_;
  Buffer<SeedState> state_;
  Buffer<uint4> packed_;
  Buffer<SeedFacts> facts_;
  Buffer<float> reaches_;
  Buffer<std::int32_t> winners_;
};

}  // namespace vicinal::cuda::kmeans

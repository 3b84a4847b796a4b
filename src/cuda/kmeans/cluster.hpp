// k-means on the device (contract clause 12): what its kernels share. Centers, labels and sums stay there; an iteration
// is a handful of launches and one small copy to the host.
//
// An assignment: the centers are made ready (centres.cu), a screen labels the rows that its bound can decide
// and lists the others (screen.cu), those are labeled by float64 keys, and rows whose label changed are added
// to the sums of one cluster and taken out of another's (sums.cu). Sums are integers
// (formulas/kmeans/limbs.hpp), so that atomics may add them in any order, and a row can be taken out again.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/base/device.hpp"
#include "cuda/base/session.hpp"
#include "cuda/nearest/task.hpp"
#include "formulas/kmeans/float_bound.hpp"
#include "formulas/kmeans/limbs.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda::kmeans {

inline constexpr int kWidePanel = 24;      ///< centers that a thread multiplies its row with at a time
inline constexpr int kNarrowPanel = 8;     ///< the same where columns are so many that no more fit a block
inline constexpr int kPointTile = 32;      ///< rows of a tile of points
inline constexpr int kMaxCandidates = 16;  ///< centers that an open row keeps a list of

/// What one assignment finds out; cleared before it.
struct ClusterTally {
  unsigned long long open;     ///< rows that the screen left to keys
  unsigned long long wide;     ///< of them those whose candidates are all centers
  unsigned long long changed;  ///< rows whose label changed
  unsigned int least_norm;     ///< bits of the least length of a center, as float32
  unsigned int unusable;       ///< not 0: some center is too far away for the screen
};
/// What the host is told of a step.
struct ClusterOutcome {
  ClusterTally tally;          ///< of the last part of the rows
  unsigned long long open;     ///< of the parts before
  unsigned long long changed;  ///< of the parts before
  long long filled;            ///< clusters with rows
  double shift;
  int moved;
  unsigned int finished;  ///< blocks of the kernel that runs; 0 between two
  unsigned int unusable;  ///< of the next tally, while `advance` finds it out; 0 between two kernels
};

/// Scale and shift of the screened rows, and the bound but for what centers say.
struct PointFrame {
  bool usable = false;
  double scale = 1;
  core::LloydBound bound;
  const float* shift = nullptr;  ///< [d]
};

/// What the float16 screen's bound needs to know of a row or a center, rounded up; see half.cu.
struct alignas(16) HalfFacts {
  float norm;         ///< of a row |X|, of a center |c~|
  float rho;          ///< distance to its rounding
  float kappa;        ///< weighted length of it
  float half_square;  ///< of a center H; infinity where it may not win
};
/// Rows and centers of the float16 screen, packed as the matrix unit reads them (screen.hpp).
struct HalfView {
  bool used = false;  ///< instead of the float32 screen
  bool few = false;   ///< by few_centres.cu, which decides open rows, too
  int exponent = 0;   ///< of the scale
  int columns = 0;    ///< spare ones included
  double beta_wide = 0;
  float beta = 0;                  ///< the same, rounded up
  float margin = 0;                ///< 4 beta + m
  const double* middle = nullptr;  ///< [d]
  __half* tiles = nullptr;         ///< [tile_count][kQueryTile x columns] rows
  std::int64_t tile_count = 0;
  HalfFacts* row_facts = nullptr;     ///< [tile_count * kQueryTile]
  __half* centre_tiles = nullptr;     ///< [.][kTableTile x columns]
  __half* centre_rows = nullptr;      ///< [k][columns], or null: the same centers, one after the other; no spare ones
  HalfFacts* centre_facts = nullptr;  ///< [k padded to tiles]
  // Open rows, by their places in the list: the first `open_room` are screened again.
  std::int64_t open_room = 0;
  __half* open_tiles = nullptr;        ///< packed as `tiles`
  float* reaches = nullptr;            ///< [open_room] what candidates' scores reach
  int* candidate_counts = nullptr;     ///< [open_room] found, whether they had room or not
  std::int32_t* candidates = nullptr;  ///< [open_room][kMaxCandidates]
};

/// Of the table of centers' hashes; all ones where it is free.
struct HashPlace {
  unsigned long long hash;
  unsigned long long first;  ///< the smallest center that has it
};

/// Arrays in device memory, and the numbers that go with them. Where the table passes through in parts (row_parts.hpp),
/// the rows and what is numbered by them are those of one part.
struct ClusterView {
  Rows rows;
  std::int64_t k = 0;
  const double* weights = nullptr;  ///< [n], or null
  // Points: rows of a tile side by side, [tiles][d][kPointTile] float32, and their squared lengths.
  PointFrame frame;
  const float* points = nullptr;
  const float* norms = nullptr;
  HalfView half;
  // Centers.
  double* centres = nullptr;             ///< [k, d]
  int panel = kWidePanel;                ///< centers of a panel
  float* panels = nullptr;               ///< [panels][d + 2][panel]: start, the columns, length
  float* lengths = nullptr;              ///< [k padded to panels]
  float* allowances = nullptr;           ///< as those
  unsigned long long* hashes = nullptr;  ///< [k]
  HashPlace* hash_table = nullptr;       ///< [hash_mask + 1], a power of two and at least twice the centers
  std::int64_t hash_mask = 0;
  double* shifts = nullptr;  ///< [k]
  // Rows.
  std::int32_t* labels = nullptr;    ///< [n]; -1: none yet
  std::int32_t* fresh = nullptr;     ///< [n] of rows in `changed`
  std::uint32_t* open = nullptr;     ///< [n]
  std::uint32_t* wide = nullptr;     ///< [n] of the open ones those that have no list of candidates
  std::uint32_t* changed = nullptr;  ///< [n]
  // Sums: of d columns, and one more of the weights where there are some.
  int columns = 0;
  int limbs = 0;  ///< 0: none are kept
  int bits = 0;
  const int* bases = nullptr;    ///< [columns]
  std::int64_t* sums = nullptr;  ///< [k][limbs][columns]
  long long* sizes = nullptr;    ///< [k]
  // Changes in the order of their clusters, or null: they are added as they come.
  std::uint32_t* entries = nullptr;        ///< [2 n] rows, those that leave with their first bit set
  std::uint32_t* cursors = nullptr;        ///< [k + 1]
  std::uint64_t* change_counts = nullptr;  ///< [k]
  ClusterOutcome* outcome = nullptr;

  [[nodiscard]] std::int64_t panel_count() const { return (k + panel - 1) / panel; }
};

/// What is found out about the terms of a column; bits of doubles that are not negative are in their order.
struct ColumnScan {
  unsigned long long largest;  ///< of |value|
  unsigned long long term;     ///< of |weight x value|
  int last;                    ///< place of the last bit of a term that is not 0, counted from 2^-1074
};

// rows.cu: kernels that read the rows as they are.
/// Adds what is found; `refused`: row * d + column, the smallest, rows counted from `first_row`.
void scan_rows(const Engine& engine, const Rows& rows, std::int64_t first_row, const double* weights,
               ColumnScan* columns, unsigned long long* refused);
void pack_points(const Engine& engine, const Rows& rows, const PointFrame& frame, float* points, float* norms);
void pack_half(const Engine& engine, const Rows& rows, const HalfView& half);
/// Labels the open rows that have lists of candidates by the keys of these, and lists the others.
void decide_narrow(const Engine& engine, const ClusterView& view);
/// Labels the listed rows by the keys of all centers.
void decide_wide(const Engine& engine, const ClusterView& view);
void own_keys(const Engine& engine, const ClusterView& view, double* keys);
/// The exact sum of weight times key, in limbs of 32 bits from 2^-1074: [kKeyLimbs], cleared before.
inline constexpr int kKeyLimbs = static_cast<int>(plugin::kInertiaLimbs);
void add_keys(const Engine& engine, const ClusterView& view, const double* keys, std::int64_t* limbs);
void widen_chosen(const Engine& engine, const Rows& rows, const std::int64_t* chosen, std::int64_t count,
                  double* values);

// sums.cu
/// Takes the rows whose label changed from one cluster's sums to another's.
void add_changed(const Engine& engine, const ClusterView& view);
/// One row given a label by the host.
void add_moved(const Engine& engine, const ClusterView& view, std::int64_t row, std::int32_t cluster);

// centres.cu
/// Before an assignment of some rows; `first`: of the first ones.
void clear_tally(const Engine& engine, const ClusterView& view, bool first);
void ready_centres(const Engine& engine, const ClusterView& view);
/// New centers, unless `wait` and some cluster is empty.
void move_centres(const Engine& engine, const ClusterView& view, bool wait);
/// Whether `advance` is for so many clusters where HalfView::used.
bool advances(std::int64_t k);
/// The same, what the host is told to `told` in its memory, and then clear_tally and ready_centres.
void advance(const Engine& engine, const ClusterView& view, bool wait, ClusterOutcome* told);

// screen.cu
/// The widest panel of so many columns that fits a block; 0: none does.
int panel_for(const Engine& engine, std::int64_t d);
void screen_points(const Engine& engine, const ClusterView& view);
/// half.cu, on Hopper.
void screen_half(const Engine& engine, const ClusterView& view);
/// few_centres.cu. Whether it screens so many columns and, at most, clusters where HalfView::used.
bool screens_few(const Engine& engine, std::int64_t d, std::int64_t k);
/// Labels all rows.
void screen_few(const Engine& engine, const ClusterView& view);
/// Opens rows that may not keep their labels, and finds their candidates; all rows should have a label.
void confirm_half(const Engine& engine, const ClusterView& view);
/// Finds the candidates of the open rows.
void narrow_half(const Engine& engine, const ClusterView& view);
void open_all(const Engine& engine, const ClusterView& view);

}  // namespace vicinal::cuda::kmeans

// The state of Lloyd's iterations on the CPU (lloyd.hpp). A row is decided, in this order, by its bounds (it is not
// even read), by a screen, or by float64 keys of the few centers that the screen leaves.
//
// Many centers. A row that has a label is first given the key to its center. That makes its upper bound as tight as it
// can be, and often decides it. Else an int8 screen (decide_by_bytes.cpp) finds the centers that are as near, and keys
// rank them. The float32 screen (decide_by_floats.cpp) takes the rows of the first assignment and those that the int8
// screen leaves too many centers for; where it does so with most of them it is not asked for some iterations.
//
// Bounds. upper and lower are float32 bounds, in the frame's units, of the distance to the row's center and to all
// others. Before an assignment they are moved by the shifts of the centers since the last one, with a factor for
// rounding. Bounds of a row that keys decided are left open, and so are all lower bounds made while centers were equal
// to each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "backend/kmeans.hpp"
#include "core/exact_sum.hpp"
#include "core/memory.hpp"
#include "cpu/kmeans/backoff.hpp"
#include "cpu/kmeans/label_screen.hpp"
#include "cpu/kmeans/row_reader.hpp"
#include "cpu/kmeans/screen.hpp"
#include "cpu/kmeans/seeding.hpp"
#include "cpu/kmeans/sums.hpp"

namespace vicinal::cpu {

/// The upper bound of a row that has none.
constexpr float kNoUpper = std::numeric_limits<float>::infinity();
constexpr std::int64_t kFetchBytes = 1024;  // of a row; what follows the processor fetches by itself
constexpr std::int64_t kLineBytes = 64;     // of the cache
/// Iterations that the int8 screen is left out for at first where it does not pay, and twice as many the next time:
/// clusters become more alike.
constexpr std::int64_t kLabelPause = 4;

/// Columns of centers and rows as the key kernels read them: zeros beyond column d.
inline std::int64_t padded_columns(std::int64_t d) {
  return (d + 7) / 8 * 8;
}

class CpuLloyd final : public kernels::ShardLloyd {
 public:
  CpuLloyd(const Context& ctx, const kernels::ClusterTask& task, const kernels::TableRanges& whole);

  void start(std::span<const double> centres) override;
  kernels::LloydStep assign() override;
  void move(std::int64_t row, std::int32_t cluster) override;
  double means() override;
  void recentre(std::span<const double> centres) override { centres_.assign(centres.begin(), centres.end()); }
  void centres(std::span<double> centres) const override {
    std::copy(centres_.begin(), centres_.end(), centres.begin());
  }
  void sizes(std::span<std::int64_t> sizes) const override;
  void labels(std::span<std::int32_t> labels) const override;
  void keys(std::span<double> keys) override;
  double inertia() override { return exact_inertia().rounded(); }
  core::ExactSum exact_inertia() override;
  void parts(std::span<std::int64_t> parts) const override;
  void rows(std::span<const std::int64_t> rows, std::span<double> values) const override;
  std::unique_ptr<kernels::Seeding> seeding(std::int64_t trials) override {
    return make_seeding(ctx_, task_, *this, trials);
  }
  std::unique_ptr<kernels::ShardSeeding> shard_seeding(std::int64_t trials, std::int64_t first) override {
    return make_shard_seeding(ctx_, task_, *this, trials, first);
  }
  kernels::AssignCounts counts() const override { return counts_; }
  std::uint64_t more_bytes() const override { return more_bytes_; }

 private:
  struct Worker {
    RowReader reader;
    std::vector<const float*> lanes;    // rows of a tile
    std::vector<const void*> lines;     // of the cache, with the rows of the next one
    core::AlignedArray<float> rounded;  // [tile_points][d] rows that are not float32
    core::AlignedArray<float> points;   // [d + 1][tile_points]
    core::AlignedArray<float> scores;   // [padded centers][tile_points]
    core::AlignedArray<double> row;     // [padded d]
    std::vector<std::int64_t> active;   // rows of a block
    std::vector<std::int32_t> offsets;  // the same, counted from the first row of the block
    std::vector<std::int64_t> open;     // of these, those that the screen left open
    std::vector<std::int32_t> candidates;
    std::vector<const void*> pointers;
    std::vector<double> sums;
    std::vector<std::int32_t> head;  // of a list of rows for each cluster
    std::vector<std::int32_t> next;
    LloydTile tile{};
    ClusterSums clusters;
    core::ExactSum inertia;
    // Of the int8 screen.
    LabelScreen::Tile labels;
    std::vector<std::int64_t> asked;  // rows in the tile
    std::vector<double> own;          // their keys to their centers
    std::vector<double> reach;        // how far the screen looks
    std::vector<std::int64_t> rest;   // rows for the float32 screen
    std::int64_t labeled = 0;         // rows that it was asked about in this assignment,
    std::int64_t refused = 0;         // and those that it left too many centers for
    std::int64_t changed = 0;
    kernels::AssignCounts counts;
  };
  using KeySink = std::function<void(Worker& worker, std::int64_t row, double key)>;

  // lloyd.cpp
  void move_bounds();
  void find_active(Worker& worker, std::int64_t begin, std::int64_t end);
  template <class Body>
  void for_each_block(const Body& body);
  void for_each_key(const KeySink& sink);

  // decide_by_floats.cpp
  void screen_block(Worker& worker, std::int64_t first);
  void stage(Worker& worker, const std::int64_t* rows, std::int64_t count, std::int64_t first);
  void list_lines(Worker& worker, const std::int64_t* rows, std::int64_t count, std::int64_t first) const;
  void decide_open(Worker& worker, std::int64_t first);
  void decide_by_keys(Worker& worker, std::int64_t row, std::int64_t first);
  void widen(Worker& worker, std::int64_t row, std::int64_t first);
  void set_label(Worker& worker, std::int64_t row, std::int32_t label, std::int64_t first);

  // decide_by_bytes.cpp
  void begin_labels();
  void end_labels();
  void drop_labels();
  [[nodiscard]] std::vector<double> mean_of_centres() const;
  void screen_labels(Worker& worker, std::int64_t first);
  void decide_tile(Worker& worker, std::int64_t first);

  [[nodiscard]] double weight(std::int64_t row) const {
    return task_.weights.empty() ? 1.0 : task_.weights[static_cast<std::size_t>(row)];
  }

  Context ctx_;
  kernels::ClusterTask task_;
  const SimdKernels& simd_;
  const LloydKernels& lloyd_;
  std::int64_t n_;
  std::int64_t d_;
  std::int64_t k_ = 0;
  Element element_;
  LloydFrame frame_;
  bool float_frame_ = false;
  std::vector<float> no_shift_;
  kernels::SumGrid grid_;
  SlicePlan plan_;
  std::uint64_t more_bytes_ = 0;
  ClusterSums clusters_;
  std::vector<Worker> workers_;
  std::vector<std::int32_t> labels_;
  std::vector<float> upper_;
  std::vector<float> lower_;
  std::vector<double> centres_;  // [k, d]
  kernels::AssignCounts counts_;

  // Of one assignment.
  LloydCentres screen_;
  bool screened_ = false;
  std::unique_ptr<LabelScreen> label_screen_;
  bool may_screen_labels_ = false;
  bool labels_screened_ = false;
  Backoff label_backoff_{kLabelPause};         // of iterations
  core::AlignedArray<double> padded_centres_;  // [k][padded d]
  std::vector<double> previous_;               // centers of the last one
  std::vector<float> shifts_;
  float most_shift_ = 0;
  float next_shift_ = 0;  // the largest of the others
  std::int32_t mover_ = -1;
};

}  // namespace vicinal::cpu

// See clustering.hpp. Making one reads the rows twice: what they are, then the form that the screen multiplies.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/half_screen.hpp"
#include "cuda/clustering.hpp"
#include "cuda/screen.hpp"

namespace vicinal::cuda {
namespace {

constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMostColumns = std::int64_t{1} << 17;
constexpr double kUnit = 0x1p-24 * (1 + 0x1p-10);
constexpr std::int64_t kPlannedLimbs = 2;

// Seconds of one multiprocessor for a row: fused multiply-adds of the float32 screen, and what the float16 screen's
// products and comparisons take, whichever is more.
constexpr double kFloatRate = 1.6e11;
constexpr double kHalfRate = 4.9e12;
constexpr double kScoreRate = 2.8e10;

std::int64_t round_to(std::int64_t x, std::int64_t step) {
  return (x + step - 1) / step * step;
}

/// Whether the float16 screen is the quicker one, where there is one.
bool takes_half(const Engine& engine, std::int64_t d, std::int64_t k) {
  if (engine.portable || engine.sums.model.width == 0 || d > core::kLargestHalfColumns) return false;
  const auto scores = static_cast<double>(round_to(k, kTableTile));
  const double half =
      scores * std::max(2 * static_cast<double>(core::half_columns(d)) / kHalfRate, 1 / kScoreRate) * 1.5;
  return !screen_serves(engine, d) || half < static_cast<double>(round_to(k, kPanel) * (d + 2)) / kFloatRate;
}

float round_up(double x) {
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) < x ? std::nextafter(near, INFINITY) : near;
}

/// Rows that may be screened a second time: where all centres' keys cost much, an eighth of the rows.
constexpr std::int64_t kLeastNarrowed = std::int64_t{1} << 15;  // elements of centres
std::int64_t narrow_room(std::int64_t n, std::int64_t d, std::int64_t k) {
  return k * d < kLeastNarrowed ? 0 : round_to((n + 7) / 8, kQueryTile);
}

/// Whether changes are ordered before they are added: where all rows' terms are many.
constexpr std::int64_t kLeastOrdered = std::int64_t{1} << 24;  // terms
bool orders_changes(const plugin::Clustering& task) {
  return task.sums != 0 && task.table.rows * task.table.cols >= kLeastOrdered;
}

std::int64_t hash_places(std::int64_t k) {
  std::int64_t places = 64;
  while (places < 2 * k) places *= 2;
  return places;
}

std::int64_t sum_columns(const plugin::Clustering& task) {
  return task.table.cols + (task.weights != nullptr ? 1 : 0);
}

std::uint64_t sum_bytes(const plugin::Clustering& task, std::int64_t limbs) {
  return task.sums != 0 ? static_cast<std::uint64_t>(task.clusters * limbs * sum_columns(task)) * 8 : 0;
}

std::uint64_t bytes_of(const Engine& engine, const plugin::Clustering& task, std::int64_t limbs) {
  const std::int64_t n = task.table.rows;
  const std::int64_t d = task.table.cols;
  const std::int64_t padded = round_to(n, kPointTile);
  const std::int64_t k = task.clusters + kPanel;
  std::int64_t bytes = n * 4 * 4 + n * 8;  // labels, lists; keys while they are asked
  if (static_cast<Memory>(task.table.memory) != Memory::cuda || task.table.col_stride != 1 ||
      task.table.row_stride != d) {
    bytes += n * row_bytes(task.table);
  }
  if (takes_half(engine, d, task.clusters)) {
    bytes += round_to(n, kQueryTile) * (core::half_columns(d) * 2 + 16);
    bytes += round_to(k, kTableTile) * (core::half_columns(d) * 2 + 16);
    const std::int64_t room = narrow_room(n, d, task.clusters);
    bytes += room * (core::half_columns(d) * 2 + 8 + kMostCandidates * 4) + (room > 0 ? n * 4 : 0);
  } else if (screen_serves(engine, d)) {
    bytes += padded * (d + 1) * 4;
  }
  if (task.weights != nullptr) bytes += n * 8;
  if (orders_changes(task)) bytes += n * 8 + (k + 1) * 12;
  bytes +=
      k * (d * 8 + (d + 2) * 4 + 64) + d * 64 + 4096 + hash_places(k) * static_cast<std::int64_t>(sizeof(HashPlace));
  return static_cast<std::uint64_t>(bytes) + sum_bytes(task, limbs) + Seeding::bytes(n, d, task.trials);
}

void require_room(const Session& session, std::uint64_t bytes, const char* what) {
  const std::uint64_t limit = session.engine.memory_limit;
  const std::uint64_t taken = session.resident_bytes;
  if (taken + bytes <= limit) return;
  throw Failure{ErrorCode::over_memory,
                std::string(what) + " needs " + std::to_string(bytes >> 20) + " MiB of device memory, but only " +
                    std::to_string((limit - std::min(limit, taken)) >> 20) + " MiB are left within its limit"};
}

double as_double(unsigned long long bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

Clustering::Clustering(Session& session, const plugin::Clustering& task)
    : session_(session), engine_(session.engine), most_(task.clusters) {
  const std::int64_t d = task.table.cols;
  take_in(task);
  bytes_ = bytes_of(engine_, task, 0);
  require_room(session_, bytes_, "kmeans");
  shift_ = Buffer<float>(engine_, d);
  outcome_ = Buffer<ClusterOutcome>(engine_, 1);
  void* pinned = nullptr;
  check(cudaHostAlloc(&pinned, sizeof(ClusterOutcome), cudaHostAllocDefault), "allocate pinned memory");
  told_ = static_cast<ClusterOutcome*>(pinned);
  try {
    scan(task);
    make_room();
  } catch (...) {
    static_cast<void>(cudaFreeHost(told_));
    throw;
  }
  session_.resident_bytes += bytes_;
}

Clustering::~Clustering() {
  session_.resident_bytes -= bytes_;
  static_cast<void>(cudaStreamSynchronize(engine_.stream));
  static_cast<void>(cudaFreeHost(told_));
}

void Clustering::take_in(const plugin::Clustering& task) {
  const plugin::Table& table = task.table;
  if (table.rows > kMostRows) {
    throw Failure{ErrorCode::over_memory, "kmeans: more than 2^31 - 1 rows do not fit one device"};
  }
  clustering_bytes(session_, task);
  view_.rows = {table.data, static_cast<DType>(table.dtype), table.rows, table.cols};
  if (!lies_ready(engine_, table, "table")) {
    copy_ = Buffer<std::byte>(engine_, table.rows * row_bytes(table));
    upload_rows(session_, table, 0, table.rows, copy_.data(), engine_.stream);
    view_.rows.data = copy_.data();
  }
  if (task.weights == nullptr) return;
  weights_ = Buffer<double>(engine_, table.rows);
  to_device(engine_, weights_.data(), task.weights, table.rows);
  view_.weights = weights_.data();
}

void Clustering::scan(const plugin::Clustering& task) {
  const Rows& rows = view_.rows;
  const std::int64_t columns = sum_columns(task);
  std::vector<ColumnScan> found(static_cast<std::size_t>(columns), ColumnScan{0, 0, 4096});
  const Buffer<ColumnScan> on_device(engine_, columns);
  const Buffer<unsigned long long> refused(engine_, 1);
  unsigned long long place = ~0ULL;
  to_device(engine_, on_device.data(), found.data(), columns);
  to_device(engine_, refused.data(), &place, 1);
  scan_rows(engine_, rows, view_.weights, on_device.data(), refused.data());
  to_host(engine_, found.data(), on_device.data(), columns);
  to_host(engine_, &place, refused.data(), 1);
  engine_.synchronize();
  if (place != ~0ULL) {
    const auto row = static_cast<std::int64_t>(place) / rows.d;
    const auto column = static_cast<std::int64_t>(place) % rows.d;
    std::vector<double> values(static_cast<std::size_t>(rows.d));
    this->rows(&row, 1, values.data());
    throw Failure{ErrorCode::bad_data, "table: row " + std::to_string(row) + ", column " + std::to_string(column) +
                                           (std::isfinite(values[static_cast<std::size_t>(column)])
                                                ? " is so large that squared distances may overflow"
                                                : " is not a finite number")};
  }
  double largest = 0;
  for (std::int64_t j = 0; j < rows.d; ++j) {
    largest = std::max(largest, as_double(found[static_cast<std::size_t>(j)].largest));
  }
  if (task.weights != nullptr) {
    const double most = as_double(found.back().term);
    const auto n = static_cast<double>(rows.n);
    const double squares = largest * largest * 4 * static_cast<double>(rows.d);
    if (!(std::max(largest, 1.0) * most * n < 0x1p1000) || !(squares * most * n < 0x1p1000)) {
      throw Failure{ErrorCode::bad_data, "weights: so large that weighted sums may overflow"};
    }
  }
  make_frame(found.data(), largest);
  if (task.sums != 0) plan_sums(task, found.data());
}

// As LloydFrame::of in cpu/lloyd_screen.cpp.
void Clustering::make_frame(const ColumnScan* columns, double largest) {
  PointFrame& frame = view_.frame;
  const std::int64_t d = view_.rows.d;
  frame.shift = shift_.data();
  shift_.zero();
  const bool half = takes_half(engine_, d, most_);
  frame.usable = d <= kMostColumns && largest >= 0x1p-300 && largest <= 0x1p500 && (half || screen_serves(engine_, d));
  frame.beta = round_up(1.25 * 0x1p-24 * static_cast<double>(d + 4) * (1 + 0x1p-20));
  frame.unit = round_up(kUnit);
  frame.tiny = 0x1p-120F;
  frame.key_margin = round_up(static_cast<double>(d + 8) * 0x1p-51);
  if (!frame.usable) return;
  frame.scale = std::ldexp(1.0, -std::ilogb(largest) - 2);
  const Buffer<double> centre(engine_, d);
  find_centre(engine_, view_.rows, centre.data());
  std::vector<double> middle(static_cast<std::size_t>(d));
  to_host(engine_, middle.data(), centre.data(), d);
  engine_.synchronize();
  if (half) return make_half(columns, middle.data());
  std::vector<float> shift;
  for (const double value : middle) shift.push_back(static_cast<float>(value * frame.scale));
  to_device(engine_, shift_.data(), shift.data(), d);
  engine_.synchronize();
}

// The scale brings the longest row that the columns' ranges allow into [2^13, 2^14).
void Clustering::make_half(const ColumnScan* columns, const double* middle) {
  HalfView& half = view_.half;
  const std::int64_t d = view_.rows.d;
  double largest = 0;
  for (std::int64_t j = 0; j < d; ++j)
    largest = std::max(largest, as_double(columns[j].largest) + std::fabs(middle[j]));
  double squares = 0;
  for (std::int64_t j = 0; j < d; ++j) {
    const double share = (as_double(columns[j].largest) + std::fabs(middle[j])) / largest;
    squares += share * share;
  }
  half.used = true;
  half.exponent = core::half_table_exponent(largest * std::sqrt(squares) * (1 + 0x1p-30));
  half.columns = static_cast<int>(core::half_columns(d));
  half.beta_wide = core::half_beta(engine_.sums.model);
  half.beta = round_up(half.beta_wide);
  half.margin = round_up(4 * half.beta_wide + static_cast<double>(d + 8) * 0x1p-20);
  middle_ = Buffer<double>(engine_, d);
  to_device(engine_, middle_.data(), middle, d);
  engine_.synchronize();
  half.middle = middle_.data();
}

void Clustering::plan_sums(const plugin::Clustering& task, const ColumnScan* columns) {
  view_.columns = static_cast<int>(sum_columns(task));
  int log = 1;
  while ((std::int64_t{1} << log) < view_.rows.n + 1) ++log;
  view_.bits = std::clamp(62 - log, core::kLeastLimbBits, core::kMostLimbBits);
  view_.limbs = 1;
  std::vector<int> bases;
  for (int j = 0; j < view_.columns; ++j) {
    const double largest = as_double(columns[j].term);
    bases.push_back(largest > 0 ? columns[j].last - 1074 : 0);
    if (!(largest > 0)) continue;
    const int depth = std::ilogb(largest) + 1 - bases.back();
    view_.limbs = std::max(view_.limbs, (depth + view_.bits - 1) / view_.bits);
  }
  const std::uint64_t sums = sum_bytes(task, view_.limbs);
  require_room(session_, bytes_ + sums, "kmeans: sums of values so far apart");
  bytes_ += sums;
  bases_ = Buffer<int>(engine_, view_.columns);
  to_device(engine_, bases_.data(), bases.data(), view_.columns);
  engine_.synchronize();
  view_.bases = bases_.data();
  sums_ = Buffer<std::int64_t>(engine_, most_ * view_.limbs * view_.columns);
  view_.sums = sums_.data();
  if (!orders_changes(task)) return;
  entries_ = Buffer<std::uint32_t>(engine_, 2 * view_.rows.n);
  cursors_ = Buffer<std::uint32_t>(engine_, most_ + 1);
  change_counts_ = Buffer<std::uint64_t>(engine_, most_);
  view_.change_counts = change_counts_.data();
  view_.entries = entries_.data();
  view_.cursors = cursors_.data();
}

void Clustering::make_room() {
  const std::int64_t n = view_.rows.n;
  const std::int64_t d = view_.rows.d;
  const std::int64_t panels = (most_ + kPanel - 1) / kPanel;
  centres_ = Buffer<double>(engine_, most_ * d);
  shifts_ = Buffer<double>(engine_, most_);
  sizes_ = Buffer<long long>(engine_, most_);
  labels_ = Buffer<std::int32_t>(engine_, 2 * n);
  lists_ = Buffer<std::uint32_t>(engine_, 2 * n);
  view_.centres = centres_.data();
  view_.shifts = shifts_.data();
  view_.sizes = sizes_.data();
  view_.labels = labels_.data();
  view_.fresh = labels_.data() + n;
  view_.open = lists_.data();
  view_.changed = lists_.data() + n;
  view_.outcome = outcome_.data();
  if (!view_.frame.usable) return;
  hashes_ = Buffer<unsigned long long>(engine_, most_);
  view_.hashes = hashes_.data();
  hash_table_ = Buffer<HashPlace>(engine_, hash_places(most_));
  view_.hash_table = hash_table_.data();
  view_.hash_mask = hash_places(most_) - 1;
  if (view_.half.used) {
    HalfView& half = view_.half;
    half.tile_count = round_to(n, kQueryTile) / kQueryTile;
    const std::int64_t rows = half.tile_count * kQueryTile;
    const std::int64_t centres = round_to(most_, kTableTile);
    tiles_ = Buffer<__half>(engine_, (rows + centres) * half.columns);
    facts_ = Buffer<HalfFacts>(engine_, rows + centres);
    half.tiles = tiles_.data();
    half.centre_tiles = tiles_.data() + rows * half.columns;
    half.row_facts = facts_.data();
    half.centre_facts = facts_.data() + rows;
    facts_.zero();
    half.open_room = narrow_room(n, d, most_);
    if (half.open_room > 0) {
      wide_ = Buffer<std::uint32_t>(engine_, n);
      open_tiles_ = Buffer<__half>(engine_, half.open_room * half.columns);
      reaches_ = Buffer<float>(engine_, half.open_room);
      candidates_ = Buffer<std::int32_t>(engine_, half.open_room * (1 + kMostCandidates));
      view_.wide = wide_.data();
      half.open_tiles = open_tiles_.data();
      half.reaches = reaches_.data();
      half.candidate_counts = candidates_.data();
      half.candidates = candidates_.data() + half.open_room;
    }
    return pack_half(engine_, view_.rows, half);
  }
  const std::int64_t padded = round_to(n, kPointTile);
  points_ = Buffer<float>(engine_, padded * d);
  norms_ = Buffer<float>(engine_, padded);
  panels_ = Buffer<float>(engine_, panels * (d + 2) * kPanel);
  bounds_ = Buffer<float>(engine_, 2 * panels * kPanel);
  view_.points = points_.data();
  view_.norms = norms_.data();
  view_.panels = panels_.data();
  view_.lengths = bounds_.data();
  view_.allowances = bounds_.data() + panels * kPanel;
  pack_points(engine_, view_.rows, view_.frame, points_.data(), norms_.data());
}

void Clustering::start(const double* centres, std::int64_t k) {
  view_.k = k;
  to_device(engine_, centres_.data(), centres, k * view_.rows.d);
  forget();
  engine_.synchronize();  // the host's centres are its own again
}

// Labels and sums.
void Clustering::forget() {
  check(cudaMemsetAsync(labels_.data(), 0xFF, static_cast<std::size_t>(view_.rows.n) * sizeof(std::int32_t),
                        engine_.stream),
        "clear labels");
  sizes_.zero();
  outcome_.zero();
  if (view_.limbs > 0) sums_.zero();
}

// Finds the rows whose label changes, and their fresh ones.
void Clustering::label(const ClusterView& view) const {
  clear_tally(engine_, view);
  if (view.frame.usable) {
    ready_centres(engine_, view);
    view.half.used ? screen_half(engine_, view) : screen_points(engine_, view);
  } else {
    open_all(engine_, view);
  }
  if (view.half.open_room > 0) {
    narrow_half(engine_, view);
    decide_narrow(engine_, view);
  }
  decide_wide(engine_, view);
}

plugin::ClusterStep Clustering::step(std::int32_t work) {
  if ((work & plugin::kAssign) != 0) {
    label(view_);
    add_changed(engine_, view_);
  }
  if ((work & (plugin::kMeans | plugin::kMeansUnlessEmpty)) != 0) {
    move_centres(engine_, view_, (work & plugin::kMeansUnlessEmpty) != 0);
  }
  to_host(engine_, told_, view_.outcome, 1);
  engine_.synchronize();
  plugin::ClusterStep step;
  if ((work & plugin::kAssign) != 0) {
    step.changed = static_cast<std::int64_t>(told_->tally.changed);
    step.rechecked = static_cast<std::int64_t>(told_->tally.open);
  }
  step.empty = view_.k - told_->filled;
  if ((work & ~plugin::kAssign) != 0) {
    step.moved = told_->moved;
    step.shift = told_->shift;
  }
  return step;
}

void Clustering::move(std::int64_t row, std::int32_t cluster) {
  add_moved(engine_, view_, row, cluster);
}

void Clustering::state(const plugin::ClusterState& state) {
  const std::int64_t n = view_.rows.n;
  if (state.centres != nullptr) to_host(engine_, state.centres, centres_.data(), view_.k * view_.rows.d);
  std::vector<long long> sizes(state.sizes != nullptr ? static_cast<std::size_t>(view_.k) : 0);
  if (state.sizes != nullptr) to_host(engine_, sizes.data(), sizes_.data(), view_.k);
  if (state.labels != nullptr) to_host(engine_, state.labels, labels_.data(), n);
  std::vector<std::int64_t> limbs(kKeyLimbs);
  if (state.keys != nullptr || state.inertia != nullptr) {
    const Buffer<double> keys(engine_, n);
    const Buffer<std::int64_t> sums(engine_, kKeyLimbs);
    own_keys(engine_, view_, keys.data());
    if (state.keys != nullptr) to_host(engine_, state.keys, keys.data(), n);
    if (state.inertia != nullptr) {
      sums.zero();
      add_keys(engine_, view_, keys.data(), sums.data());
      to_host(engine_, limbs.data(), sums.data(), kKeyLimbs);
    }
  }
  engine_.synchronize();
  if (state.sizes != nullptr) std::copy(sizes.begin(), sizes.end(), state.sizes);
  if (state.inertia == nullptr) return;
  const std::int64_t carry = core::settle_limbs(limbs.data(), 1, kKeyLimbs, 32);
  *state.inertia = core::rounded_limbs(limbs.data(), 1, kKeyLimbs, 32, carry, -1074);
}

void Clustering::rows(const std::int64_t* rows, std::int64_t count, double* values) {
  const Buffer<std::int64_t> chosen(engine_, count);
  const Buffer<double> wide(engine_, count * view_.rows.d);
  to_device(engine_, chosen.data(), rows, count);
  widen_chosen(engine_, view_.rows, chosen.data(), count, wide.data());
  to_host(engine_, values, wide.data(), wide.size());
  engine_.synchronize();
}

void Clustering::seed(std::int64_t trials) {
  seeding_.reset();
  if (trials >= 0) seeding_ = std::make_unique<Seeding>(engine_, view_, trials);
}

// No row has a label then, so that each gets a fresh one.
void Clustering::meet(const std::int64_t* rows, std::int64_t count) {
  const Buffer<std::int64_t> chosen(engine_, count);
  to_device(engine_, chosen.data(), rows, count);
  view_.k = count;
  widen_chosen(engine_, view_.rows, chosen.data(), count, centres_.data());
  forget();
  label(view_);
  seeding_->merge(view_, count);
  engine_.synchronize();  // the host's list is its own again
}

std::uint64_t clustering_bytes(const Session& session, const plugin::Clustering& task) {
  const std::uint64_t bytes = bytes_of(session.engine, task, kPlannedLimbs);
  require_room(session, bytes, "kmeans");
  return bytes;
}

const char* clustering_screens(const Engine& engine, const plugin::Clustering& task) {
  if (takes_half(engine, task.table.cols, task.clusters)) return "float16";
  return screen_serves(engine, task.table.cols) ? "float32" : "";
}

}  // namespace vicinal::cuda

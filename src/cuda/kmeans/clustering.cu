// See clustering.hpp. Making one reads the rows twice: what they are, then the form that the screen multiplies; the
// second time where they pass through is the first assignment.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/kmeans/clustering.hpp"
#include "cuda/kmeans/room.hpp"
#include "cuda/nearest/screen/screen.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

constexpr std::int64_t kMiddleRows = 1024;
constexpr std::int64_t kFewOpen = 10;  // of so many rows one may be open or change where labels are confirmed

float round_up(double x) {
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) < x ? std::nextafter(near, INFINITY) : near;
}

double as_double(unsigned long long bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

Clustering::Clustering(Session& session, const Host& host, const plugin::Clustering& task)
    : session_(session),
      engine_(session.engine),
      most_(task.clusters),
      lies_there_(lies_there(task.table)),
      adds_all_(engine_.ablation == core::Ablation::kmeans_changes),
      parts_(session, task.table, clustering_room(session, task).part) {
  view_.rows = parts_.rows();
  bytes_ = clustering_bytes(engine_, task, 0, parts_.part());
  if (task.weights != nullptr) {
    weights_ = Buffer<double>(engine_, task.table.rows);
    to_device(engine_, weights_.data(), task.weights, task.table.rows);
  }
  shift_ = Buffer<float>(engine_, task.table.cols);
  outcome_ = Buffer<ClusterOutcome>(engine_, 1);
  void* pinned = nullptr;
  check(cudaHostAlloc(&pinned, sizeof(ClusterOutcome), cudaHostAllocDefault), "allocate pinned memory");
  told_ = static_cast<ClusterOutcome*>(pinned);
  try {
    scan(host, task);
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
  if (shown_ != nullptr) static_cast<void>(cudaFreeHost(shown_));
}

void Clustering::scan(const Host& host, const plugin::Clustering& task) {
  const std::int64_t d = task.table.cols;
  const std::int64_t columns = sum_columns(task);
  scanned_.assign(static_cast<std::size_t>(columns), ColumnScan{0, 0, 4096});
  std::vector<ColumnScan>& found = scanned_;
  const Buffer<ColumnScan> on_device(engine_, columns);
  const Buffer<unsigned long long> refused(engine_, 1);
  unsigned long long place = ~0ULL;
  to_device(engine_, on_device.data(), found.data(), columns);
  to_device(engine_, refused.data(), &place, 1);
  parts_.pass(host, task.table, [&](const Rows& rows, std::int64_t first) {
    const double* const weights = task.weights != nullptr ? weights_.data() + first : nullptr;
    scan_rows(engine_, rows, first, weights, on_device.data(), refused.data());
  });
  to_host(engine_, found.data(), on_device.data(), columns);
  to_host(engine_, &place, refused.data(), 1);
  engine_.synchronize();
  if (place != ~0ULL) {
    const auto row = static_cast<std::int64_t>(place) / d;
    const auto column = static_cast<std::int64_t>(place) % d;
    std::vector<double> values(static_cast<std::size_t>(d));
    this->rows(task.table, &row, 1, values.data());
    throw Failure{ErrorCode::bad_data, "table: row " + std::to_string(task.first_row + row) + ", column " +
                                           std::to_string(column) +
                                           (std::isfinite(values[static_cast<std::size_t>(column)])
                                                ? " is so large that squared distances may overflow"
                                                : " is not a finite number")};
  }
  double largest = 0;
  for (std::int64_t j = 0; j < d; ++j) {
    largest = std::max(largest, as_double(found[static_cast<std::size_t>(j)].largest));
  }
  // Of a shard's weights the host says it, which knows those of all.
  if (task.weights != nullptr && task.sums != plugin::kSumsOfShard) {
    const double most = as_double(found.back().term);
    const auto n = static_cast<double>(task.table.rows);
    const double squares = largest * largest * 4 * static_cast<double>(d);
    if (!(std::max(largest, 1.0) * most * n < 0x1p1000) || !(squares * most * n < 0x1p1000)) {
      throw Failure{ErrorCode::bad_data, "weights: so large that weighted sums may overflow"};
    }
  }
  make_frame(task.table, found.data(), largest);
  if (task.sums != 0) plan_sums(task);
}

// The median of each column of a sample.
std::vector<double> Clustering::middle_of(const plugin::Table& table) {
  const Buffer<double> centre(engine_, table.cols);
  if (parts_.stay()) {
    find_centre(engine_, parts_.rows(), centre.data());
  } else {
    std::vector<std::int64_t> sample(static_cast<std::size_t>(std::min(kMiddleRows, parts_.part())));
    const auto count = static_cast<std::int64_t>(sample.size());
    for (std::int64_t i = 0; i < count; ++i) sample[static_cast<std::size_t>(i)] = i * (table.rows / count);
    find_centre(engine_, parts_.choose(table, sample.data(), count).rows, centre.data());
  }
  std::vector<double> middle(static_cast<std::size_t>(table.cols));
  to_host(engine_, middle.data(), centre.data(), table.cols);
  engine_.synchronize();
  return middle;
}

// See LloydFrame::of in cpu/kmeans/screen.cpp.
void Clustering::make_frame(const plugin::Table& table, const ColumnScan* columns, double largest) {
  PointFrame& frame = view_.frame;
  const std::int64_t d = view_.rows.d;
  frame.shift = shift_.data();
  shift_.zero();
  const bool half = takes_half(engine_, d, most_);
  frame.usable = engine_.ablation != core::Ablation::kmeans_screen && core::lloyd_serves(d, largest) &&
                 (half || panel_for(engine_, d) > 0);
  frame.bound.beta = round_up(core::lloyd_beta(d));
  frame.bound.unit = round_up(core::kLloydUnit);
  frame.bound.tiny = static_cast<float>(core::kLloydTiny);
  frame.bound.key_margin = round_up(core::lloyd_key_margin(d));
  if (!frame.usable) return;
  frame.scale = core::lloyd_scale(largest);
  const std::vector<double> middle = middle_of(table);
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
  half.few = screens_few(engine_, d, most_);
  half.beta_wide = core::half_beta(engine_.sums.model);
  half.beta = round_up(half.beta_wide);
  half.margin = round_up(4 * half.beta_wide + static_cast<double>(d + 8) * 0x1p-20);
  middle_ = Buffer<double>(engine_, d);
  to_device(engine_, middle_.data(), middle, d);
  engine_.synchronize();
  half.middle = middle_.data();
}

void Clustering::plan_sums(const plugin::Clustering& task) {
  view_.columns = static_cast<int>(sum_columns(task));
  orders_ = orders_changes(engine_, task, parts_.part());
  if (task.sums == plugin::kSumsOfShard) return;  // how they are kept follows from all shards
  const int bits = core::limb_bits_for(task.table.rows);
  int limbs = 1;
  std::vector<int> bases;
  for (const ColumnScan& column : scanned_) {
    const double largest = as_double(column.term);
    bases.push_back(largest > 0 ? column.last - 1074 : 0);
    limbs = std::max(limbs, core::limbs_for(largest, bases.back(), bits));
  }
  const std::uint64_t sums = sum_bytes(task, limbs);
  require_room(session_, bytes_ + sums, "kmeans: sums of values so far apart");
  bytes_ += sums;
  make_sums({limbs, bits, bases.data()});
}

void Clustering::make_sums(const plugin::SumLayout& layout) {
  view_.limbs = layout.limbs;
  view_.bits = layout.bits;
  bases_ = Buffer<int>(engine_, view_.columns);
  to_device(engine_, bases_.data(), layout.bases, view_.columns);
  engine_.synchronize();
  view_.bases = bases_.data();
  sums_ = Buffer<std::int64_t>(engine_, most_ * view_.limbs * view_.columns);
  view_.sums = sums_.data();
  if (!orders_) return;
  entries_ = Buffer<std::uint32_t>(engine_, 2 * parts_.part());
  cursors_ = Buffer<std::uint32_t>(engine_, most_ + 1);
  change_counts_ = Buffer<std::uint64_t>(engine_, most_);
  view_.change_counts = change_counts_.data();
  view_.entries = entries_.data();
  view_.cursors = cursors_.data();
}

// Of all rows there are labels and weights, of a part of them the rest.
void Clustering::make_room() {
  const std::int64_t n = parts_.part();
  centres_ = Buffer<double>(engine_, most_ * view_.rows.d);
  shifts_ = Buffer<double>(engine_, most_);
  sizes_ = Buffer<long long>(engine_, most_);
  labels_ = Buffer<std::int32_t>(engine_, parts_.rows().n);
  fresh_ = Buffer<std::int32_t>(engine_, n);
  lists_ = Buffer<std::uint32_t>(engine_, 2 * n);
  view_.centres = centres_.data();
  view_.shifts = shifts_.data();
  view_.sizes = sizes_.data();
  view_.fresh = fresh_.data();
  view_.open = lists_.data();
  view_.changed = lists_.data() + n;
  view_.outcome = outcome_.data();
  if (view_.frame.usable) {
    hashes_ = Buffer<unsigned long long>(engine_, most_);
    view_.hashes = hashes_.data();
    hash_table_ = Buffer<HashPlace>(engine_, hash_places(most_));
    view_.hash_table = hash_table_.data();
    view_.hash_mask = hash_places(most_) - 1;
    view_.half.used ? make_half_room() : make_point_room();
  }
  show(parts_.rows(), 0);
  if (parts_.stay() && view_.frame.usable) pack();
}

void Clustering::make_half_room() {
  const std::int64_t n = parts_.part();
  HalfView& half = view_.half;
  const std::int64_t rows = round_to(n, kQueryTile);
  const std::int64_t centres = round_to(most_, kTableTile);
  tiles_ = Buffer<__half>(engine_, (rows + centres) * half.columns);
  facts_ = Buffer<HalfFacts>(engine_, rows + centres);
  half.tiles = tiles_.data();
  half.centre_tiles = tiles_.data() + rows * half.columns;
  half.row_facts = facts_.data();
  half.centre_facts = facts_.data() + rows;
  facts_.zero();
  half.open_room = narrow_room(engine_, n, view_.rows.d, most_);
  if (half.open_room == 0) return;
  wide_ = Buffer<std::uint32_t>(engine_, n);
  open_tiles_ = Buffer<__half>(engine_, half.open_room * half.columns);
  reaches_ = Buffer<float>(engine_, half.open_room);
  candidates_ = Buffer<std::int32_t>(engine_, half.open_room * (1 + kMaxCandidates));
  view_.wide = wide_.data();
  half.open_tiles = open_tiles_.data();
  half.reaches = reaches_.data();
  half.candidate_counts = candidates_.data();
  half.candidates = candidates_.data() + half.open_room;
  if (!confirms_labels(view_.rows.d, most_)) return;
  centre_rows_ = Buffer<__half>(engine_, most_ * half.columns);
  centre_rows_.zero();
  half.centre_rows = centre_rows_.data();
}

void Clustering::make_point_room() {
  const std::int64_t d = view_.rows.d;
  const std::int64_t padded = round_to(parts_.part(), kPointTile);
  view_.panel = panel_for(engine_, d);
  const std::int64_t centres = round_to(most_, view_.panel);
  points_ = Buffer<float>(engine_, padded * d);
  norms_ = Buffer<float>(engine_, padded);
  panels_ = Buffer<float>(engine_, centres * (d + 2));
  bounds_ = Buffer<float>(engine_, 2 * centres);
  view_.points = points_.data();
  view_.norms = norms_.data();
  view_.panels = panels_.data();
  view_.lengths = bounds_.data();
  view_.allowances = bounds_.data() + centres;
}

// These rows are the view's from now on; `first`: the number of the first of them.
void Clustering::show(const Rows& rows, std::int64_t first) {
  view_.rows = rows;
  view_.labels = labels_.data() + first;
  if (weights_.size() > 0) view_.weights = weights_.data() + first;
  view_.half.tile_count = round_to(rows.n, kQueryTile) / kQueryTile;
}

void Clustering::pack() {
  if (view_.half.used) return pack_half(engine_, view_.rows, view_.half);
  pack_points(engine_, view_.rows, view_.frame, points_.data(), norms_.data());
}

void Clustering::start(const double* centres, std::int64_t k) {
  view_.k = k;
  forget();
  recentre(centres);
}

// Labels, and the sums by them.
void Clustering::forget() {
  confirms_ = ready_ = false;
  check(cudaMemsetAsync(labels_.data(), 0xFF, labels_.bytes(), engine_.stream), "clear labels");
  sizes_.zero();
  outcome_.zero();
  if (view_.limbs > 0) sums_.zero();
}

void Clustering::recentre(const double* centres) {
  ready_ = false;
  to_device(engine_, centres_.data(), centres, view_.k * view_.rows.d);
  engine_.synchronize();  // the host's centers are its own again
}

// Finds the rows whose label changes, and their fresh ones. `first`: of the parts that pass through.
void Clustering::label(const Engine& engine, bool first) {
  if (!ready_) clear_tally(engine, view_, first);
  if (view_.frame.usable) {
    if (!ready_) ready_centres(engine, view_);
    if (view_.half.few) return screen_few(engine, view_);
    if (confirms_) {
      confirm_half(engine, view_);
    } else {
      view_.half.used ? screen_half(engine, view_) : screen_points(engine, view_);
    }
  } else {
    open_all(engine, view_);
  }
  if (view_.half.open_room > 0) {
    if (!confirms_) narrow_half(engine, view_);
    decide_narrow(engine, view_);
  }
  decide_wide(engine, view_);
}

void Clustering::assign(const Engine& engine, bool first) {
  label(engine, first);
  add_changed(engine, view_);
}

// What of a step is the same each time.
void Clustering::launch(const Engine& engine, std::int32_t work) {
  const bool wait = (work & plugin::kMeansUnlessEmpty) != 0;
  if ((work & plugin::kAssign) != 0) assign(engine, true);
  if (makes_ready(work)) return advance(engine, view_, wait, told_);
  if ((work & ~plugin::kAssign) != 0) move_centres(engine, view_, wait);
  to_host(engine, told_, view_.outcome, 1);
}

// Whether a step that does this leaves everything ready for the next assignment.
bool Clustering::makes_ready(std::int32_t work) const {
  return parts_.stay() && view_.frame.usable && view_.half.used && advances(view_.k) && (work & plugin::kAssign) != 0 &&
         (work & ~plugin::kAssign) != 0;
}

plugin::ClusterStep Clustering::step(const Host& host, const plugin::Table& table, std::int32_t work) {
  if ((work & plugin::kAssign) != 0 && adds_all_) forget();
  if (parts_.stay()) {
    replay_.run(engine_, {4 * std::int64_t{work} + (ready_ ? 2 : 0) + (confirms_ ? 1 : 0), view_.k},
                [&](const Engine& engine) { launch(engine, work); });
    ready_ = makes_ready(work);
  } else {
    if ((work & plugin::kAssign) != 0) {
      parts_.pass(host, table, [&](const Rows& rows, std::int64_t first) {
        show(rows, first);
        if (view_.frame.usable) pack();
        assign(engine_, first == 0);
      });
    }
    launch(engine_, work & ~plugin::kAssign);
  }
  engine_.synchronize();
  plugin::ClusterStep step;
  if ((work & plugin::kAssign) != 0) {
    step.changed = static_cast<std::int64_t>(told_->changed + told_->tally.changed);
    step.rechecked = static_cast<std::int64_t>(told_->open + told_->tally.open);
    // Of the next assignment about as many rows change or are open; where labels are confirmed, the former are open.
    const std::int64_t next = step.rechecked + (confirms_ ? 0 : step.changed);
    confirms_ = parts_.stay() && view_.half.centre_rows != nullptr && confirms_labels(view_.rows.d, view_.k) &&
                next <= view_.rows.n / kFewOpen;
  }
  step.empty = view_.k - told_->filled;
  if ((work & ~plugin::kAssign) != 0) {
    step.moved = told_->moved;
    step.shift = told_->shift;
  }
  return step;
}

void Clustering::move(const plugin::Table& table, std::int64_t row, std::int32_t cluster) {
  if (parts_.stay()) return add_moved(engine_, view_, row, cluster);
  const RowParts::Chosen one = parts_.choose(table, &row, 1);
  show(one.rows, row);
  add_moved(engine_, view_, 0, cluster);
}

void Clustering::state(const Host& host, const plugin::Table& table, const plugin::ClusterState& state) {
  if (state.centres != nullptr) to_host(engine_, state.centres, centres_.data(), view_.k * view_.rows.d);
  std::vector<long long> sizes(state.sizes != nullptr ? static_cast<std::size_t>(view_.k) : 0);
  if (state.sizes != nullptr) to_host(engine_, sizes.data(), sizes_.data(), view_.k);
  if (state.labels != nullptr) to_host(engine_, state.labels, labels_.data(), labels_.size());
  std::vector<std::int64_t> limbs(kKeyLimbs);
  const bool sums_keys = state.inertia != nullptr || state.inertia_limbs != nullptr;
  if (state.keys != nullptr || sums_keys) {
    const Buffer<double> keys(engine_, parts_.part());
    const Buffer<std::int64_t> sums(engine_, kKeyLimbs);
    sums.zero();
    parts_.pass(host, table, [&](const Rows& rows, std::int64_t first) {
      show(rows, first);
      own_keys(engine_, view_, keys.data());
      if (state.keys != nullptr) to_host(engine_, state.keys + first, keys.data(), rows.n);
      if (sums_keys) add_keys(engine_, view_, keys.data(), sums.data());
    });
    to_host(engine_, limbs.data(), sums.data(), kKeyLimbs);
  }
  engine_.synchronize();
  if (state.sizes != nullptr) std::copy(sizes.begin(), sizes.end(), state.sizes);
  if (state.inertia_limbs != nullptr) std::copy(limbs.begin(), limbs.end(), state.inertia_limbs);
  if (state.inertia == nullptr) return;
  const std::int64_t carry = core::settle_limbs(limbs.data(), 1, kKeyLimbs, 32);
  *state.inertia = core::rounded_limbs(limbs.data(), 1, kKeyLimbs, 32, carry, -1074);
}

void Clustering::rows(const plugin::Table& table, const std::int64_t* rows, std::int64_t count, double* values) {
  const RowParts::Chosen chosen = parts_.choose(table, rows, count);
  const Buffer<double> wide(engine_, count * chosen.rows.d);
  widen_chosen(engine_, chosen.rows, chosen.numbers.data(), count, wide.data());
  to_host(engine_, values, wide.data(), wide.size());
  engine_.synchronize();
}

void Clustering::ranges(plugin::TermRange* columns) const {
  for (std::size_t j = 0; j < scanned_.size(); ++j) {
    columns[j] = {as_double(scanned_[j].largest), as_double(scanned_[j].term), scanned_[j].last};
  }
}

void Clustering::share(const plugin::SumLayout& layout) {
  // Its own sums, those of all, and the copy of the latter's sizes.
  const std::int64_t count = most_ * layout.limbs * view_.columns;
  const auto bytes = static_cast<std::uint64_t>(2 * count + most_) * sizeof(std::int64_t);
  require_room(session_, bytes, "kmeans: sums of a shard");
  make_sums(layout);
  shared_sums_ = Buffer<std::int64_t>(engine_, count);
  shared_sizes_ = Buffer<long long>(engine_, most_);
  bytes_ += bytes;
  session_.resident_bytes += bytes;
  void* pinned = nullptr;
  check(cudaHostAlloc(&pinned, static_cast<std::size_t>(count + most_) * sizeof(std::int64_t), cudaHostAllocPortable),
        "allocate pinned memory");
  shown_ = static_cast<std::int64_t*>(pinned);
}

void Clustering::parts(std::int64_t*& parts) {
  const std::int64_t count = view_.k * view_.limbs * view_.columns;
  static_assert(sizeof(long long) == sizeof(std::int64_t));
  to_host(engine_, shown_, sums_.data(), count);
  to_host(engine_, reinterpret_cast<long long*>(shown_ + count), sizes_.data(), view_.k);
  engine_.synchronize();
  parts = shown_;
}

void Clustering::means_of(const std::int64_t* parts, double* shift) {
  const std::int64_t count = view_.k * view_.limbs * view_.columns;
  to_device(engine_, shared_sums_.data(), parts, count);
  to_device(engine_, shared_sizes_.data(), reinterpret_cast<const long long*>(parts + count), view_.k);
  ClusterView all = view_;
  all.sums = shared_sums_.data();
  all.sizes = shared_sizes_.data();
  ready_ = false;
  move_centres(engine_, all, false);
  to_host(engine_, told_, view_.outcome, 1);
  engine_.synchronize();
  *shift = told_->shift;
}

bool Clustering::seeds(std::int64_t trials) const {
  if (lies_there_) return true;
  return parts_.stay() && Seeding::bytes(view_.rows.n, view_.rows.d, trials) <= left_of(session_);
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
  label(engine_, true);
  seeding_->merge(view_, count);
  engine_.synchronize();  // the host's list is its own again
}

}  // namespace vicinal::cuda::kmeans

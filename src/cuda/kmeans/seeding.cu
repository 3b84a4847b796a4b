// See seeding.hpp: the host's side, and what is not a step of k-means++ (seeding_step.cu).
#include "cuda/kmeans/seeding.cuh"

namespace vicinal::cuda::kmeans {
namespace {

constexpr int kWarps = kThreads / 32;

// Before the first center every key counts as 1.
__global__ void begin_kernel(const __grid_constant__ SeedView v, std::int64_t padded) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row == 0) *v.state = {};
  if (row < v.n) v.keys[row] = 1;
  if (row < padded && v.facts != nullptr) {
    v.facts[row] = {};
    v.reaches[row] = row < v.n ? INFINITY : NAN;
  }
}

__global__ void __launch_bounds__(kThreads) add_rows_kernel(const __grid_constant__ SeedView v) {
  const std::int64_t group = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (group >= v.tree.sizes[0]) return;
  const double sum = sum_of_rows(v, group * core::kMassParts, [&](std::int64_t row) { return v.keys[row]; });
  if (threadIdx.x % 8 == 0) v.sums[group * v.slots] = sum;
}

__global__ void __launch_bounds__(kThreads) add_level_kernel(const __grid_constant__ SeedView v, int level) {
  const std::int64_t node = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (node < v.tree.sizes[level]) add_node(v, level, node, 0);
}

__global__ void __launch_bounds__(kThreads)
    draw_kernel(const __grid_constant__ SeedView v, const double* draws, std::int64_t count, std::int64_t* rows) {
  __shared__ double parts[kWarps][core::kMassParts];
  const int warp = threadIdx.x / 32;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp;
  if (at >= count) return;
  const std::int64_t row = drawn_row(v, draws[at], v.state->winner, parts[warp]);
  if (threadIdx.x % 32 == 0) rows[at] = row;
}

// Eight lanes a row: the key to its fresh label's center, if that is less than to any before.
template <class T>
__global__ void __launch_bounds__(kThreads) merge_kernel(const T* rows, const __grid_constant__ ClusterView clusters,
                                                         const __grid_constant__ SeedView v, std::int64_t centres) {
  const auto d = static_cast<int>(v.d);
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 8;
  if (row >= v.n) return;
  const std::int32_t label = clusters.fresh[row];
  const double key =
      squared_differences(clusters.centres + std::int64_t{label} * d, rows + row * d, d, core::mask_of_eight());
  if (threadIdx.x % 8 != 0 || (centres != 0 && !(key < v.keys[row]))) return;
  v.keys[row] = key;
  v.winners[row] = static_cast<std::int32_t>(centres) + label;
}

int slots_of(std::int64_t trials) {
  return trials == 0 ? 1 : static_cast<int>((trials + kTrialsAtOnce - 1) / kTrialsAtOnce * kTrialsAtOnce);
}
std::int64_t product_steps(std::int64_t d) {
  return (d + 31) / 32;
}

}  // namespace

Seeding::Seeding(const Engine& engine, const ClusterView& view, std::int64_t trials)
    : engine_(engine), clusters_(view) {
  const std::int64_t n = view.rows.n;
  view_.n = n;
  view_.d = view.rows.d;
  view_.weights = view.weights;
  view_.tree = core::MassTree(n);
  view_.slots = slots_of(trials);
  keys_ = Buffer<double>(engine, (trials + 1) * n + view_.tree.nodes * view_.slots);
  changed_ = Buffer<std::uint32_t>(engine, view_.tree.sizes[0] * view_.slots);
  state_ = Buffer<SeedState>(engine, 1);
  view_.keys = keys_.data();
  view_.tried = view_.keys + n;
  view_.sums = view_.tried + trials * n;
  view_.changed = changed_.data();
  view_.state = state_.data();
  changed_.zero();
  const std::int64_t padded = padded_rows(n);
  if (trials > 0) {
    facts_ = Buffer<SeedFacts>(engine, padded);
    reaches_ = Buffer<float>(engine, padded);
    view_.facts = facts_.data();
    view_.reaches = reaches_.data();
  } else {
    winners_ = Buffer<std::int32_t>(engine, n);
    view_.winners = winners_.data();
  }
  begin_kernel<<<blocks_for(padded, kThreads), kThreads, 0, engine.stream>>>(view_, padded);
  check_launch("begin to seed");
  if (trials > 0) make_screen();
  add_masses();
}

// Rows that the frame cannot scale are decided by keys, and so are all where bytes are not multiplied.
void Seeding::make_screen() {
  constexpr std::int64_t kMaxColumns = std::int64_t{1} << 17;  // 2^17 127^2 < 2^31
  if (!clusters_.frame.usable || engine_.compiled_for < 80 || view_.d > kMaxColumns) return;
  view_.screened = true;
  view_.steps = static_cast<int>(product_steps(view_.d));
  view_.square_scale = clusters_.frame.scale * clusters_.frame.scale;
  packed_ = Buffer<uint4>(engine_, padded_rows(view_.n) / 16 * view_.steps * 32);
  view_.packed = packed_.data();
  const Buffer<double> middle(engine_, view_.d);
  find_centre(engine_, clusters_.rows, middle.data());
  pack_seeds(engine_, clusters_.rows, view_, middle.data(), clusters_.frame.scale);
}

void Seeding::add_masses() {
  add_rows_kernel<<<blocks_for(view_.tree.sizes[0] * 8, kThreads), kThreads, 0, engine_.stream>>>(view_);
  check_launch("add masses");
  for (int level = 1; level < view_.tree.levels; ++level) {
    add_level_kernel<<<blocks_for(view_.tree.sizes[level], kThreads), kThreads, 0, engine_.stream>>>(view_, level);
    check_launch("add sums of masses");
  }
}

void Seeding::draw(const double* draws, std::int64_t count, std::int64_t* rows) {
  const Buffer<double> given(engine_, count);
  const Buffer<std::int64_t> drawn(engine_, count);
  to_device(engine_, given.data(), draws, count);
  draw_kernel<<<blocks_for(count, kWarps), kThreads, 0, engine_.stream>>>(view_, given.data(), count, drawn.data());
  check_launch("draw rows");
  to_host(engine_, rows, drawn.data(), count);
  engine_.synchronize();
}

void Seeding::choose(const double* draws, std::int64_t trials, std::int64_t count, std::int64_t* rows) {
  const Buffer<double> given(engine_, count * trials);
  const Buffer<std::int64_t> chosen(engine_, count);
  to_device(engine_, given.data(), draws, count * trials);
  draw_kernel<<<blocks_for(trials, kWarps), kThreads, 0, engine_.stream>>>(view_, given.data(), trials,
                                                                           view_.state->drawn);
  check_launch("draw rows");
  for (std::int64_t i = 0; i < count; ++i, ++centres_, backwards_ = !backwards_) {
    SeedStep step;
    step.trials = static_cast<int>(trials);
    step.next_trials = i + 1 < count ? step.trials : 0;
    step.next = given.data() + (i + 1) * trials;
    step.chosen = chosen.data() + i;
    step.first = centres_ == 0;
    step.backwards = backwards_;
    choose_seed(engine_, clusters_.rows, view_, step);
  }
  to_host(engine_, rows, chosen.data(), count);
  engine_.synchronize();
}

void Seeding::merge(const ClusterView& view, std::int64_t count) {
  with_elements(view.rows.data, view.rows.dtype, [&](const auto* data) {
    merge_kernel<<<blocks_for(view_.n * 8, kThreads), kThreads, 0, engine_.stream>>>(data, view, view_, centres_);
  });
  check_launch("keys to candidates");
  add_masses();
  centres_ += count;
}

double Seeding::state(std::int32_t* winners) {
  SeedState state;
  std::vector<double> totals(static_cast<std::size_t>(view_.slots));
  to_host(engine_, &state, view_.state, 1);
  to_host(engine_, totals.data(), view_.sums + view_.tree.total() * view_.slots, view_.slots);
  if (winners != nullptr) to_host(engine_, winners, view_.winners, view_.n);
  engine_.synchronize();
  return totals[static_cast<std::size_t>(state.winner)];
}

std::uint64_t Seeding::bytes(std::int64_t n, std::int64_t d, std::int64_t trials) {
  if (trials < 0) return 0;
  const core::MassTree tree(n);
  const std::int64_t slots = slots_of(trials);
  const std::int64_t padded = padded_rows(n);
  const std::int64_t screen =
      trials > 0
          ? padded * (product_steps(d) * 32 + static_cast<std::int64_t>(sizeof(SeedFacts) + sizeof(float))) + d * 8
          : n * 4;
  return static_cast<std::uint64_t>((trials + 1) * n * 8 + tree.nodes * slots * 8 + tree.sizes[0] * slots * 4 + screen +
                                    (std::int64_t{1} << 16));
}

}  // namespace vicinal::cuda::kmeans

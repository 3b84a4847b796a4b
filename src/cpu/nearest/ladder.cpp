// The choice of centers and scales; every choice is sound, a bad one lets more rows survive.
#include "cpu/nearest/ladder.hpp"

#include <algorithm>
#include <cmath>

#include "core/distance.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/byte_scale.hpp"
#include "cpu/nearest/packed_table.hpp"
#include "cpu/nearest/pruned.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kTrialRows = 256;
constexpr std::int64_t kSampleElements = std::int64_t{1} << 17;  // each is rounded some twenty times

// Floating-point screens are centered at the median, cosine's at the median direction, products not at all. The scale
// is a power of two that brings every |y_c| below one.
Screen floating_screen(const kernels::NearestTask& task, ScreenType type) {
  const kernels::Prepared& index = *task.index;
  const std::int64_t d = task.queries.cols();
  std::vector<double> centre;
  double largest = index.largest;
  if (task.metric == Metric::cosine) {
    centre.assign(static_cast<std::size_t>(d), 0);
    largest = core::normalize_row(index.centre.data(), d, centre.data()) ? 2 : 1;
  } else if (task.metric == Metric::inner_product) {
    for (const double c : index.centre) largest = std::max(largest, index.largest + std::fabs(c));
  } else {
    centre = index.centre;
  }
  const int exponent = largest > 0 ? std::clamp(std::ilogb(largest) + 1, -1000, 1000) : 0;
  return {type, kind_of(task.metric), d, std::ldexp(1.0, -exponent), std::move(centre)};
}

// Evenly spread rows as the search sees them, [count, d], in runs so that a block source is not asked for single ones.
std::vector<double> sample_rows(const Context& ctx, const kernels::NearestTask& task) {
  const TableView& table = task.index->table;
  const std::int64_t d = table.cols();
  const std::int64_t count = std::min(table.rows(), std::clamp(kSampleElements / d, std::int64_t{16}, kTrialRows));
  const std::int64_t run = table.is_block_source() ? std::min<std::int64_t>(count, 16) : 1;
  std::vector<double> sample(static_cast<std::size_t>(count * d));
  for (std::int64_t i = 0; i < count; i += run) {
    ctx.check_cancelled();
    const std::int64_t here = std::min(run, count - i);
    const std::int64_t row = std::min(i * table.rows() / count, table.rows() - here);
    double* to = sample.data() + i * d;
    core::widen_rows(table, row, row + here, to);
    for (std::int64_t r = 0; r < here && task.metric == Metric::cosine; ++r) {
      core::normalize_row(to + r * d, d, to + r * d);
    }
  }
  return sample;
}

}  // namespace

ScreenKind kind_of(Metric metric) {
  return metric == Metric::inner_product ? ScreenKind::product : ScreenKind::distance;
}

// int8 has 256 steps for all columns together. Tried are two centers: the median and the middle of the range; of bytes
// it is the middle of their range.
Screen byte_screen(const Context& ctx, const kernels::NearestTask& task) {
  const std::int64_t d = task.queries.cols();
  const ScreenKind kind = kind_of(task.metric);
  const auto columns = static_cast<std::size_t>(d);
  if (kind == ScreenKind::distance && task.metric != Metric::cosine && task.index->table.dtype() == DType::uint8) {
    return {ScreenType::int8, kind, d, 1.0, std::vector<double>(columns, 128.0)};
  }
  const std::vector<double> sample = sample_rows(ctx, task);
  const bool whole = std::all_of(sample.begin(), sample.end(), [](double x) { return x == std::nearbyint(x); });
  const auto [smallest, greatest] = std::minmax_element(sample.begin(), sample.end());
  // Bytes as another type. About the middles of a sample's columns, other rows might not fit.
  if (kind == ScreenKind::distance && whole && *smallest >= 0 && *greatest > 127 && *greatest <= 255) {
    return {ScreenType::int8, kind, d, 1.0, std::vector<double>(columns, 128.0)};
  }
  std::vector<std::vector<double>> centres(1, std::vector<double>(columns, 0.0));
  if (kind == ScreenKind::distance) {
    centres[0] = floating_screen(task, ScreenType::float32).centre();
    std::vector<double> least(sample.begin(), sample.begin() + d);
    std::vector<double> most = least;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      least[i % columns] = std::min(least[i % columns], sample[i]);
      most[i % columns] = std::max(most[i % columns], sample[i]);
    }
    std::vector<double> middle(columns);
    for (std::size_t j = 0; j < columns; ++j) {
      middle[j] = least[j] / 2 + most[j] / 2;
      if (whole) middle[j] = std::ceil(middle[j]);
    }
    centres.push_back(std::move(middle));
  }
  ByteScale best;
  const std::vector<double>* best_centre = centres.data();
  for (const auto& centre : centres) {
    const ByteScale here = byte_scale(ctx, sample, centre);
    if (!(here.error < best.error)) continue;
    best = here;
    best_centre = &centre;
  }
  return {ScreenType::int8, kind, d, best.scale, *best_centre};
}

std::vector<double> screen_centre(const kernels::NearestTask& task) {
  return floating_screen(task, ScreenType::float32).centre();
}

bool screen_serves(Metric metric, ScreenType type, std::int64_t d) {
  const bool product = metric == Metric::euclidean || metric == Metric::sqeuclidean || metric == Metric::cosine ||
                       metric == Metric::inner_product;
  return product && d <= Screen::largest_columns(type == ScreenType::automatic ? ScreenType::float32 : type);
}

namespace {

/// Whether a screen is quicker than finer ones, for this task on this machine.
bool pays(const kernels::NearestTask& task, ScreenType type, const SimdKernels& simd) {
  if (simd.quick[screen_index(type)]) return true;
  return type == ScreenType::int8 && task.kept_screens > 0 && task.index->packed.keeps() &&
         task.queries.rows() <= simd.kept_int8_queries;
}

}  // namespace

std::vector<ScreenType> screen_types(const kernels::NearestTask& task, const SimdKernels& simd) {
  if (kernels::is_product(task.method)) return {ScreenType::float32};
  if (task.method != Method::fused) return {};
  if (task.screen != ScreenType::automatic) return {task.screen};
  std::vector<ScreenType> types;
  if (task.pruned) types.push_back(ScreenType::int8);
  for (const ScreenType type : {ScreenType::int8, ScreenType::bfloat16, ScreenType::float32}) {
    if (pays(task, type, simd) && screen_serves(task.metric, type, task.queries.cols())) types.push_back(type);
  }
  return types;
}

kernels::PackedKind packed_kind(Metric metric, ScreenType type, const SimdKernels& simd) {
  return {metric == Metric::sqeuclidean ? Metric::euclidean : metric, type, simd.tile_rows};
}

kernels::PackedKind packed_kind(const kernels::NearestTask& task, const std::vector<ScreenType>& types,
                                std::size_t level, const SimdKernels& simd) {
  kernels::PackedKind kind = packed_kind(task.metric, types[level], simd);
  kind.pruned = task.pruned && level == 0;
  return kind;
}

std::vector<Screen> make_ladder(const Context& ctx, const kernels::NearestTask& task,
                                const std::vector<ScreenType>& types) {
  std::vector<Screen> ladder;
  ladder.reserve(types.size());
  const SimdKernels& simd = simd_kernels(ctx.isa());
  for (const ScreenType type : types) {
    const kernels::PackedKind kind = packed_kind(task, types, ladder.size(), simd);
    if (static_cast<int>(ladder.size()) < task.kept_screens) {
      const auto kept = task.index->packed.get(kind);
      if (kept) {
        ladder.push_back(static_cast<const KeptRows&>(*kept).screen());
        continue;
      }
    }
    if (kind.pruned) {
      ladder.push_back(pruned_screen(*task.index->packed.pruning(kind.metric)));
      continue;
    }
    ladder.push_back(type == ScreenType::int8 ? byte_screen(ctx, task) : floating_screen(task, type));
  }
  return ladder;
}

}  // namespace vicinal::cpu

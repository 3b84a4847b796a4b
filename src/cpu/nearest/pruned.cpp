// Axes by subspace iteration: exact ones are not needed, because whatever the axes leave is in the last column of an
// image. A vector is one worker's, so that threads do not show. See pruned.hpp.
#include "cpu/nearest/pruned.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/context_state.hpp"
#include "core/distance.hpp"
#include "core/infinity.hpp"
#include "core/orthonormal.hpp"
#include "core/parallel.hpp"
#include "core/philox.hpp"
#include "core/table_access.hpp"
#include "cpu/nearest/block.hpp"
#include "cpu/nearest/byte_scale.hpp"
#include "cpu/nearest/ladder.hpp"
#include "cpu/nearest/packed_table.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kFewestRows = 1024;
constexpr std::int64_t kFewestColumns = 32;
constexpr std::int64_t kMaxQueries = 64;
constexpr std::int64_t kSurveyedValues = std::int64_t{1} << 20;
constexpr std::int64_t kMaxSample = 2048;
constexpr std::int64_t kMinSample = 256;
constexpr std::int64_t kImageColumns[] = {16, 32, 48, 64, 96, 128};  // of an image, tried
constexpr std::int64_t kFinerColumns[] = {52, 116};                  // of a finer one: one and two cache lines
constexpr std::int64_t kMaxAxes = 127;
constexpr double kFinerWorthIt = 0.9;  // of the time without finer images
constexpr int kIterations = 5;
constexpr std::int64_t kAsked = 32;  // rows of the sample that ask the others
constexpr std::int64_t kTypicalK = 10;
constexpr std::int64_t kFarther = 16;  // the neighbor that says, with the first one, how distances grow
constexpr double kScreenBytes = 0.05;  // a column of a query takes as long as reading so many bytes of rows
constexpr double kPairsBytes = 0.4;    // the same without an instruction for int8, where products are added in pairs
constexpr double kMissBytes = 1536;    // and finding a row as long as so many
constexpr double kFinerBytes = 64;     // the same of a finer image, which is fetched while others are compared
constexpr double kLagging = 3;         // times as many rows are left, because limits reach their end late; measured
constexpr double kLonger = 0.65;       // exponent by which more are left of longer lists; measured
constexpr double kRankedOfList = 6;    // times k rows are ranked at least; measured
constexpr double kWorthIt = 0.92;      // of the time without
constexpr double kTypicalQueries = 8;
// Rows longer than so many times the longest of the sample survive: an error in parts of their length would keep
// others.
constexpr double kLongerThanSample = 4;

Metric kept_metric(Metric metric) {
  return metric == Metric::sqeuclidean ? Metric::euclidean : metric;
}

std::int64_t padded(std::int64_t size) {
  return (size + 7) / 8 * 8;
}

std::int64_t sample_size(const kernels::NearestTask& task) {
  const std::int64_t wanted = std::clamp(kSurveyedValues / task.index->table.cols(), kMinSample, kMaxSample);
  return std::min(task.index->distinct_rows(), wanted);
}

bool could_prune(const Context& ctx, const kernels::NearestTask& task) {
  const TableView& table = task.index->table;
  const SimdKernels& simd = simd_kernels(ctx.isa());
  return task.collect == kernels::Collect::k_list && task.screen == ScreenType::automatic &&
         task.queries.rows() <= kMaxQueries && screen_serves(task.metric, ScreenType::int8, table.cols()) &&
         (simd.quick[screen_index(ScreenType::int8)] || simd.kept_int8_queries >= kMaxQueries) &&
         !table.is_block_source() && table.cols() >= kFewestColumns && task.index->distinct_rows() >= kFewestRows;
}

/// What a search compares of a row: columns of its image, of a finer one (0: none), and the shares of the rows that
/// come to it and that are ranked.
struct Images {
  std::int64_t columns;
  std::int64_t finer_columns;
  double finer_share;
  double share;
};

/// Bytes, or what takes as long as reading them, for each row of the table.
double cost_of(const Context& ctx, const kernels::NearestTask& task, const Images& images, double queries) {
  const TableView& table = task.index->table;
  const auto d = static_cast<double>(table.cols());
  const bool borrows = RowReading::of(table, task.metric).borrow;
  const double key = kMissBytes + d * (borrows ? static_cast<double>(size_of(table.dtype())) : 24);
  const double longer = std::pow(std::max<double>(1, static_cast<double>(task.k) / kTypicalK), kLonger);
  const double fewest = kRankedOfList * static_cast<double>(task.k) / static_cast<double>(task.index->distinct_rows());
  const auto more = [&](double share) { return std::min(1.0, std::max(fewest, share * longer * kLagging)); };
  const double finer = images.finer_columns > 0
                           ? more(images.finer_share) *
                                 (kFinerBytes + static_cast<double>(FinerTerms::image_bytes(images.finer_columns)))
                           : 0;
  const double product = simd_kernels(ctx.isa()).quick[screen_index(ScreenType::int8)] ? kScreenBytes : kPairsBytes;
  const auto columns = static_cast<double>(images.columns);
  return columns + 12 + queries * (columns * product + finer + more(images.share) * key);
}

struct Sample {
  std::int64_t rows;
  std::int64_t d;
  std::vector<double> raw;      // [rows, d] as the search sees them
  std::vector<double> centred;  // [rows, d padded], over a power of two
  double longest = 0;           // of the centred rows, in the table's unit, about

  Sample(const Context& ctx, const kernels::NearestTask& task, const std::vector<double>& centre)
      : rows(sample_size(task)),
        d(task.index->table.cols()),
        raw(static_cast<std::size_t>(rows * d)),
        centred(static_cast<std::size_t>(rows * padded(d)), 0.0) {
    const kernels::Prepared& index = *task.index;
    double largest = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      ctx.check_cancelled();
      const std::int64_t distinct = i * index.distinct_rows() / rows;
      const std::int64_t row = index.grouped() ? index.distinct[static_cast<std::size_t>(distinct)] : distinct;
      double* const to = raw.data() + i * d;
      core::widen_rows(index.table, row, row + 1, to);
      if (task.metric == Metric::cosine) core::normalize_row(to, d, to);
      double* const less = centred.data() + i * padded(d);
      for (std::int64_t j = 0; j < d; ++j) {
        less[j] = to[j] - centre[static_cast<std::size_t>(j)];
        largest = std::max(largest, std::fabs(less[j]));
      }
    }
    if (!(largest > 0x1p-400 && largest < 0x1p400)) {
      rows = 0;
      return;
    }
    const double scale = std::ldexp(1.0, -std::ilogb(largest));
    for (double& value : centred) value *= scale;
    for (std::int64_t i = 0; i < rows; ++i) {
      const double* const row = centred.data() + i * padded(d);
      longest = std::max(longest, std::sqrt(std::inner_product(row, row + d, row, 0.0)) / scale);
    }
  }
};

/// Axes of the sample by falling variance, about; fewer than `count` where its rank is less.
core::DenseVectors axes_of(const Context& ctx, const Sample& sample, std::int64_t count) {
  const std::int64_t d = sample.d;
  const std::int64_t n = sample.rows;
  const SimdKernels& simd = simd_kernels(ctx.isa());
  const KeysFn products = simd.keys[static_cast<int>(KeyOp::products)][static_cast<int>(Element::float64)];
  std::vector<double> turned(static_cast<std::size_t>(d * n));
  std::vector<const void*> rows(static_cast<std::size_t>(n));
  std::vector<const void*> columns(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % 64 == 0) ctx.check_cancelled();
    rows[static_cast<std::size_t>(i)] = sample.centred.data() + i * padded(d);
    for (std::int64_t j = 0; j < d; ++j) turned[j * n + i] = sample.centred[i * padded(d) + j];
  }
  for (std::int64_t j = 0; j < d; ++j) columns[static_cast<std::size_t>(j)] = turned.data() + j * n;
  core::DenseVectors vectors(static_cast<std::size_t>(count));
  for (std::size_t b = 0; b < vectors.size(); ++b) {
    vectors[b].assign(static_cast<std::size_t>(padded(d)), 0);
    for (std::int64_t c = 0; c < d; ++c) {
      vectors[b][static_cast<std::size_t>(c)] = core::philox_uniform(0, b, static_cast<std::uint64_t>(c)) - 0.5;
    }
  }
  for (int step = 0; step < kIterations; ++step) {
    core::parallel_for(ctx, static_cast<std::int64_t>(vectors.size()), [&](std::int64_t b, int /*worker*/) {
      std::vector<double>& vector = vectors[static_cast<std::size_t>(b)];
      std::vector<double> along(static_cast<std::size_t>(padded(n)), 0);
      products(vector.data(), rows.data(), n, d, along.data());
      products(along.data(), columns.data(), d, n, vector.data());
    });
    vectors.resize(core::make_orthonormal(ctx, vectors));
    if (vectors.empty()) break;
  }
  for (auto& vector : vectors) vector.resize(static_cast<std::size_t>(d));
  return vectors;
}

double length_limit(const kernels::NearestTask& task) {
  const kernels::Prepared& index = *task.index;
  if (task.metric == Metric::cosine) return 2.125;
  double largest = index.largest;
  if (task.metric == Metric::inner_product) {
    double centre = 0;
    for (const double c : index.centre) centre = std::max(centre, std::fabs(c));
    largest += centre;
  }
  return largest * std::sqrt(static_cast<double>(index.table.cols())) * (1 + 0x1p-10) + 0x1p-490;
}

/// What a query may reach: of distances the distance, of products the smallest of them; of each row that asks.
std::vector<double> reaches_of(const Context& ctx, const kernels::NearestTask& task, const Sample& sample) {
  const bool of_products = task.metric == Metric::inner_product;
  std::vector<double> reaches(static_cast<std::size_t>(kAsked));
  const std::int64_t d = sample.d;
  const double quantile =
      static_cast<double>(kTypicalK * sample.rows) / static_cast<double>(task.index->distinct_rows());
  core::parallel_for(ctx, kAsked, [&](std::int64_t q, int /*worker*/) {
    const std::int64_t own = q * sample.rows / kAsked;
    const double* const query = sample.raw.data() + own * d;
    std::vector<double> found;
    for (std::int64_t i = 0; i < sample.rows; ++i) {
      if (i % 64 == 0) ctx.check_cancelled();
      if (i == own) continue;
      const double* const row = sample.raw.data() + i * d;
      double sum = 0;
      for (std::int64_t j = 0; j < d; ++j) {
        sum += of_products ? -query[j] * row[j] : (query[j] - row[j]) * (query[j] - row[j]);
      }
      found.push_back(sum);
    }
    std::partial_sort(found.begin(), found.begin() + kFarther, found.end());
    double& reach = reaches[static_cast<std::size_t>(q)];
    if (of_products) {
      reach = -found[0];
      return;
    }
    const double first = std::sqrt(found[0]);
    const double farther = std::sqrt(found[kFarther - 1]);
    reach = first;
    // As in a space of as many dimensions as the growth between the two shows.
    if (first > 0 && farther > first) {
      reach *= std::pow(quantile, std::log(farther / first) / std::log(static_cast<double>(kFarther)));
    }
  });
  return reaches;
}

/// The images of the sample in `columns` columns, from those in all.
std::vector<double> shorter(std::span<const double> images, std::int64_t all, std::int64_t columns) {
  const auto count = static_cast<std::int64_t>(images.size()) / all;
  std::vector<double> out(static_cast<std::size_t>(count * columns));
  for (std::int64_t i = 0; i < count; ++i) {
    const double* const from = images.data() + i * all;
    std::copy_n(from, columns - 1, out.data() + i * columns);
    double rest = 0;
    for (std::int64_t j = columns - 1; j < all; ++j) rest += from[j] * from[j];
    out[i * columns + columns - 1] = std::sqrt(rest);
  }
  return out;
}

struct Rounding {
  std::vector<double> centre;
  double scale = 1;
};

Rounding rounding_of(const Context& ctx, ScreenKind kind, std::span<const double> images, std::int64_t columns) {
  Rounding rounding;
  rounding.centre.assign(static_cast<std::size_t>(columns), 0);
  const auto count = static_cast<std::int64_t>(images.size()) / columns;
  if (kind == ScreenKind::distance) {
    std::vector<double> rests;
    for (std::int64_t i = 0; i < count; ++i) rests.push_back(images[i * columns + columns - 1]);
    std::nth_element(rests.begin(), rests.begin() + count / 2, rests.end());
    rounding.centre.back() = rests[static_cast<std::size_t>(count / 2)];
  }
  std::vector<double> some;
  double largest = 0;
  for (std::int64_t i = 0; i < count; i += 8) {
    for (std::int64_t j = 0; j < columns; ++j) {
      some.push_back(images[i * columns + j]);
      largest = std::max(largest, std::fabs(some.back() - rounding.centre[static_cast<std::size_t>(j)]));
    }
  }
  if (!(largest > 0x1p-400)) return rounding;
  rounding.scale = byte_scale(ctx, some, rounding.centre).scale;
  return rounding;
}

/// The share of the sample that a screen of these images leaves, over the rows that ask.
double share_left(const Context& ctx, ScreenKind kind, std::span<const double> images, std::int64_t columns,
                  const Rounding& rounding, std::span<const double> reaches) {
  const auto count = static_cast<std::int64_t>(images.size()) / columns;
  std::vector<double> rounded(images.size());
  std::vector<double> errors(static_cast<std::size_t>(count));
  std::vector<double> lengths(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    double error = 0;
    double length = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t at = i * columns + j;
      const double value = (images[at] - rounding.centre[static_cast<std::size_t>(j)]) * rounding.scale;
      rounded[at] = std::nearbyint(std::clamp(value, -128.0, 127.0));
      error += (value - rounded[at]) * (value - rounded[at]);
      length += rounded[at] * rounded[at];
    }
    errors[i] = std::sqrt(error);
    lengths[i] = std::sqrt(length);
  }
  std::vector<std::int64_t> left(static_cast<std::size_t>(kAsked));
  core::parallel_for(ctx, kAsked, [&](std::int64_t q, int /*worker*/) {
    const std::int64_t own = q * count / kAsked;
    const double reach = reaches[static_cast<std::size_t>(q)];
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == own) continue;
      double sum = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        const double a = rounded[own * columns + j];
        const double b = rounded[i * columns + j];
        sum += kind == ScreenKind::product ? a * b : (a - b) * (a - b);
      }
      const bool stays = kind == ScreenKind::product
                             ? sum + errors[own] * lengths[i] + (lengths[own] + errors[own]) * errors[i] >=
                                   reach * rounding.scale * rounding.scale
                             : std::sqrt(sum) <= reach * rounding.scale + errors[own] + errors[i];
      left[static_cast<std::size_t>(q)] += stays ? 1 : 0;
    }
  });
  const auto total = std::accumulate(left.begin(), left.end(), std::int64_t{0});
  return static_cast<double>(total) / static_cast<double>(kAsked * (count - 1));
}

kernels::Pruning survey(const Context& ctx, const kernels::NearestTask& task) {
  kernels::Pruning best;
  best.metric = kept_metric(task.metric);
  const SimdKernels& simd = simd_kernels(ctx.isa());
  const ScreenKind kind = kind_of(task.metric);
  const std::int64_t d = task.index->table.cols();
  std::vector<double> centre =
      kind == ScreenKind::product ? std::vector<double>(static_cast<std::size_t>(d), 0.0) : screen_centre(task);
  const Sample sample(ctx, task, centre);
  if (sample.rows == 0) return best;
  const auto axes = axes_of(ctx, sample, std::min(kMaxAxes, d / 2));
  if (axes.empty()) return best;
  std::vector<double> flat;
  for (const auto& axis : axes) flat.insert(flat.end(), axis.begin(), axis.end());
  const double longest = std::min(length_limit(task), kLongerThanSample * sample.longest + 0x1p-490);
  const Projection all(flat, centre, longest, simd, &ctx);
  if (!all.serves()) return best;
  std::vector<double> images(static_cast<std::size_t>(sample.rows * all.columns()));
  core::parallel_for(ctx, sample.rows, [&](std::int64_t i, int /*worker*/) {
    all.map(sample.raw.data() + i * d, images.data() + i * all.columns());
  });
  const std::vector<double> reaches = reaches_of(ctx, task, sample);
  struct Tried {
    std::int64_t columns;
    Rounding rounding;
    double share;
  };
  const auto look = [&](std::int64_t wanted) -> Tried {
    const std::int64_t columns = std::min(wanted, all.columns());  // fewer where the rank is less
    const std::vector<double> some = shorter(images, all.columns(), columns);
    Rounding rounding = rounding_of(ctx, kind, some, columns);
    const double share = share_left(ctx, kind, some, columns, rounding, reaches);
    return {columns, std::move(rounding), share};
  };
  double least = kInfinity;
  Tried first{};
  for (const std::int64_t wanted : kImageColumns) {
    const std::int64_t columns = std::min(wanted, all.columns());
    if (columns == first.columns || 2 * columns > d) break;
    Tried trial = look(wanted);
    const double cost = cost_of(ctx, task, {columns, 0, 0, trial.share}, kTypicalQueries);
    if (!(cost < least)) continue;
    least = cost;
    first = std::move(trial);
  }
  if (first.columns == 0) return best;
  best.columns = first.columns;
  best.share = first.share;
  const Screen whole = byte_screen(ctx, task);  // loses nothing of what axes leave
  best.share_without = share_left(ctx, kind, sample.raw, d, {whole.centre(), whole.scale()}, reaches);
  // Finer images do not change the first ones: with fewer columns one query would be faster, but many slower.
  Tried second{};
  const bool always = core::ContextAccess::ablation(ctx) == core::Ablation::pruning_forecast;
  least = always ? kInfinity : kFinerWorthIt * least;
  const auto add_finer = [&](Tried trial) {
    const double cost = cost_of(ctx, task, {first.columns, trial.columns, first.share, trial.share}, kTypicalQueries);
    if (trial.columns <= first.columns || !(cost < least)) return;
    least = cost;
    best.finer_columns = trial.columns;
    best.finer_share = first.share;
    best.share = trial.share;
    second = std::move(trial);
  };
  for (const std::int64_t wanted : kFinerColumns) add_finer(look(wanted));
  add_finer({d, {}, best.share_without});
  const auto screen_of = [&](const Tried& tried) {
    const auto axes_used = static_cast<std::size_t>((tried.columns - 1) * d);
    best.bytes += Projection::bytes(tried.columns - 1, d);
    auto projection = std::make_shared<const Projection>(std::span(flat).first(axes_used), centre, longest, simd, &ctx);
    return std::make_shared<Screen>(ScreenType::int8, kind, tried.rounding.scale, tried.rounding.centre,
                                    std::move(projection));
  };
  const auto screen = screen_of(first);
  if (second.columns == d) {
    screen->refine_by(std::make_shared<Screen>(whole));
    best.bytes += static_cast<std::uint64_t>(d) * sizeof(double);
  } else if (second.columns > 0) {
    screen->refine_by(screen_of(second));
  }
  best.screen = screen;
  return best;
}

}  // namespace

std::uint64_t pruning_bytes(const kernels::NearestTask& task) {
  const std::int64_t d = task.index->table.cols();
  const std::int64_t rows = sample_size(task);
  const std::int64_t values = 6 * rows * padded(d) + 4 * (kMaxAxes + 1) * (padded(d) + padded(rows));
  return static_cast<std::uint64_t>(values) * sizeof(double);
}

bool prunes(const Context& ctx, const kernels::NearestTask& task) {
  if (!could_prune(ctx, task)) return false;
  const kernels::PackedSlot& packed = task.index->packed;
  auto noted = packed.pruning(kept_metric(task.metric));
  if (!noted) {
    const std::unique_lock<std::mutex> alone = packed.lock_survey();
    if (!alone) return false;  // another search makes it, with its memory
    try {
      noted = packed.note(survey(ctx, task));
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  if (noted->columns == 0) return false;
  if (core::ContextAccess::ablation(ctx) == core::Ablation::pruning_forecast) return true;
  const auto queries = static_cast<double>(task.queries.rows());
  const Images used = {noted->columns, noted->finer_columns, noted->finer_share, noted->share};
  const Images without = {task.index->table.cols(), 0, 0, noted->share_without};
  return cost_of(ctx, task, used, queries) < kWorthIt * cost_of(ctx, task, without, queries);
}

const Screen& pruned_screen(const kernels::Pruning& pruning) {
  return *static_cast<const Screen*>(pruning.screen.get());
}

}  // namespace vicinal::cpu

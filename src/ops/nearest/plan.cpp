// Dimension alone says little: rows of 41 columns may lie on a surface of four. So the planner tries: a tree over a
// sample of the table answers a sample of the queries and counts the rows it touches. Where that promises much more
// than building costs, the index's own tree is built and asked, which is no loss if it is taken; else a second, larger
// sample says how the rows touched grow with the table. What is in no doubt is not asked any further.
#include "ops/nearest/plan.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal {
namespace {

using kernels::Collect;
using kernels::NearestTask;

constexpr std::int64_t kFewRows = 8192;     // of a table of which samples say nothing: its tree is asked itself
constexpr std::int64_t kSampledLists = 32;  // for as many lists a sample has rows, or it says nothing either
constexpr std::int64_t kFewestLists = 2;    // where a table has rows for no more lists than these, a tree does not pay
constexpr double kNoQuestion = 1e-4;        // seconds of one core: what takes less is not asked about
constexpr std::int64_t kTrialQueries[] = {8, 64, 256};
constexpr double kGrowthSlows =
    0.85;  // times the exponent: smaller boxes are met less often; measured, 3 to 16 columns
constexpr double kSlowestGrowth = 0.2;  // exponent in the size of the table
constexpr double kShareOfTrial = 0.05;  // of brute force: more is not spent on the question
constexpr double kShareInFew = 0.15;    // the same in so few columns that a tree nearly always wins
constexpr std::int64_t kFewColumns = 4;
constexpr double kShareOfPromise = 0.1;     // of what a tree seems to save: it is built for less, and asked itself
constexpr double kFewPairs = 1 << 20;       // of queries and rows: what ranking them takes is not asked about
constexpr std::int64_t kShareRows = 512;    // of the sample that says which share of the rows screens leave,
constexpr std::int64_t kShareQueries = 32;  // and of its queries
constexpr std::int64_t kShareBytes = std::int64_t{32} << 20;  // more are not copied for the question
constexpr double kWideMargin = 0.25;  // of brute force: whatever takes less is not asked about further

kernels::Costs costs_of(const Context& ctx, const NearestTask& task) {
  return kernels::backend_of(ctx).nearest().costs(ctx, task);
}

double build_seconds(const kernels::Costs& costs, std::int64_t n) {
  return costs.tree_start + static_cast<double>(n) * std::log2(static_cast<double>(n) / 32 + 2) * costs.tree_build;
}

// `count` rows spread over [0, n), one in each of as many equal stretches.
std::vector<std::int64_t> spread(std::int64_t n, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::uint64_t random = 0x2545F4914F6CDD1DU;
  for (std::int64_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::int64_t first = i * n / count;
    const auto stretch = static_cast<std::uint64_t>((i + 1) * n / count - first);
    rows[static_cast<std::size_t>(i)] = first + static_cast<std::int64_t>((random >> 33) % stretch);
  }
  return rows;
}

// Some rows of a table, copied; of a table in a device's memory, which the host cannot read, as many at equal
// distances.
struct Sample {
  std::vector<std::byte> bytes;
  TableView view;

  Sample(const Context& ctx, const TableView& table, const std::vector<std::int64_t>& rows) {
    const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
    const auto count = static_cast<std::int64_t>(rows.size());
    if (table.memory() == Memory::cuda) {
      view = TableView(table.data(), table.dtype(), count, table.cols(), table.rows() / count * table.row_stride(),
                       table.col_stride(), table.memory());
      return;
    }
    bytes.resize(static_cast<std::size_t>(count * row_bytes));
    const auto copy = [&](std::int64_t chunk, int /*worker*/) {
      for (std::int64_t i = chunk * 256; i < std::min(count, (chunk + 1) * 256); ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        core::copy_rows(table, row, row + 1, bytes.data() + i * row_bytes);
      }
    };
    if (table.is_block_source()) {  // called by one thread at a time
      for (std::int64_t chunk = 0; chunk * 256 < count; ++chunk) copy(chunk, 0);
    } else {
      core::parallel_for(ctx, (count + 255) / 256, copy);
    }
    view = TableView(bytes.data(), table.dtype(), count, table.cols(), table.cols());
  }
};

// What a search does when `queries` are asked of an index, in a tree or (nullptr) through the task's screens; nothing
// when a key overflows.
std::optional<SearchStats> tried(const Context& ctx, const NearestTask& task, const kernels::Prepared& index,
                                 const kernels::Tree* tree, const TableView& queries, std::int64_t k) {
  NearestTask trial;
  trial.index = &index;
  trial.queries = queries;
  trial.metric = task.metric;
  trial.p = task.p;
  trial.method = tree != nullptr ? Method::kdtree : task.method;
  trial.screen = task.screen;
  trial.tree = tree;
  trial.collect = task.collect == Collect::k_list ? Collect::k_list : Collect::count;
  trial.k = k;
  trial.max_key = task.max_key;
  trial.radius = task.radius;
  // As the search itself does, which may have more queries than the trial, a filter, and rows to exclude.
  trial.takes_boxes = task.counts_boxes() ? kernels::TakesBoxes::always : kernels::TakesBoxes::never;
  std::vector<std::int64_t> ids;
  std::vector<double> distances;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> counts;
  if (trial.collect == Collect::k_list) {
    ids.resize(static_cast<std::size_t>(queries.rows() * k));
    distances.resize(ids.size());
  } else {
    counts.resize(static_cast<std::size_t>(queries.rows()));
  }
  SearchStats stats;
  kernels::NearestResult result{ids, distances, offsets, counts, stats};
  try {
    kernels::backend_of(ctx).nearest().search(ctx, trial, result);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_data) return std::nullopt;  // the search itself will name the rows
    throw;
  }
  return stats;
}

// Rows touched a query.
std::optional<double> touched(const Context& ctx, const NearestTask& task, const kernels::Prepared& index,
                              const kernels::Tree& tree, const TableView& queries, std::int64_t k) {
  const auto stats = tried(ctx, task, index, &tree, queries, k);
  if (!stats) return std::nullopt;
  return static_cast<double>(stats->survivors) / static_cast<double>(queries.rows());
}

// A sample of the table as an index of its own, and queries to ask it.
struct Trial {
  Sample table;
  Sample queries;
  kernels::Prepared index;
  std::int64_t k;

  Trial(const Context& ctx, const NearestTask& task, std::int64_t size, std::int64_t asked, std::int64_t neighbors)
      : table(ctx, task.index->table, rows_of(*task.index, size)),
        queries(ctx, task.queries, spread(task.queries.rows(), asked)),
        k(neighbors) {
    index.table = table.view;
  }

  // Whether the queries leave the coarsest screen for finer ones, which take their time.
  bool leaves_coarse_screen(const Context& ctx, const NearestTask& task) {
    kernels::backend_of(ctx).nearest().prepare(ctx, index);
    const auto stats = tried(ctx, task, index, nullptr, queries.view, k);
    return stats && 2 * stats->escalated > queries.view.rows();
  }

  // Rows whose keys a search by screens computes, of all queries; 0 where the search itself will name bad rows.
  double left_by_screens(const Context& ctx, const NearestTask& task) {
    try {
      kernels::backend_of(ctx).nearest().prepare(ctx, index);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return 0;
    }
    const auto stats = tried(ctx, task, index, nullptr, queries.view, k);
    return stats ? static_cast<double>(stats->survivors) : 0;
  }

 private:
  static std::vector<std::int64_t> rows_of(const kernels::Prepared& whole, std::int64_t size) {
    std::vector<std::int64_t> rows = spread(whole.distinct_rows(), size);
    if (whole.grouped()) {
      for (std::int64_t& row : rows) row = whole.distinct[static_cast<std::size_t>(row)];
    }
    return rows;
  }
};

// Seconds for the rows that the screens leave to queries within a radius: as large a share of the table as of a sample.
double ranking_seconds(const Context& ctx, const NearestTask& task, const kernels::Costs& costs) {
  const std::int64_t n = task.index->distinct_rows();
  const std::int64_t m = task.queries.rows();
  const double pairs = static_cast<double>(n) * static_cast<double>(m);
  const bool may_be_many = task.collect != Collect::k_list && task.radii.empty() && costs.rank > 0;
  if (!may_be_many || pairs < kFewPairs) return 0;
  if (task.index->table.is_block_source() || task.queries.is_block_source()) return 0;  // rows are dear
  const std::int64_t size = std::min(n, kShareRows);
  const std::int64_t asked = std::min(m, kShareQueries);
  if ((size + asked) * task.queries.cols() * static_cast<std::int64_t>(sizeof(double)) > kShareBytes) return 0;
  Trial trial(ctx, task, size, asked, 1);
  const double left = trial.left_by_screens(ctx, task) / static_cast<double>(size * asked);
  const auto rows = static_cast<double>(task.index->table.rows());
  const auto eligible = static_cast<double>(kernels::eligible_rows(task.filter, task.index->table.rows()));
  return left * pairs * eligible / rows * costs.rank;
}

std::string with_commas(double value) {
  std::string digits = std::to_string(std::llround(value));
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

// Two digits are all that a forecast knows.
double rounded(double value) {
  if (value < 100) return std::round(value);
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

}  // namespace

double brute_seconds(const Context& ctx, const NearestTask& task) {
  const kernels::Costs costs = costs_of(ctx, task);
  return costs.brute + ranking_seconds(ctx, task, costs);
}

double tree_search_seconds(const Context& ctx, const NearestTask& task, double rows_a_query, bool coarse_screen) {
  kernels::Costs costs = costs_of(ctx, task);
  const auto queries = static_cast<double>(task.queries.rows());
  if (!coarse_screen && costs.brute > 0) costs.left_to_screens.max_rows *= costs.brute_fine / costs.brute;
  const double rows = costs.left_to_screens.rows_worth(rows_a_query);
  return costs.tree_start + std::max(queries * (costs.tree_query + rows * costs.tree_row), rows * costs.tree_row_alone);
}

std::string TreeForecast::sentence(const NearestTask& task) const {
  std::string text = "a tree would touch ";
  text += at_least ? "more than " : "about ";
  text += with_commas(rounded(rows_a_query));
  text += " of ";
  text += with_commas(static_cast<double>(task.index->distinct_rows()));
  text += " rows a query";
  return text;
}

bool may_use_tree(const Context& ctx, const NearestTask& task, double brute_seconds) {
  const kernels::Prepared& index = *task.index;
  const kernels::Backend& backend = kernels::backend_of(ctx);
  const std::int64_t n = index.distinct_rows();
  if (!backend.nearest().can_use_tree(task) || index.table.is_block_source()) return false;
  const kernels::Costs costs = costs_of(ctx, task);
  const bool stands = index.tree.get(backend.device()) != nullptr;
  if (n >= kFewRows) return stands || build_seconds(costs, n) < brute_seconds;
  // A device begins too slowly for so few rows.
  if (costs.tree_start > 0 || brute_seconds * ctx.threads() < kNoQuestion) return false;
  return stands || build_seconds(costs, n) < kShareOfTrial * brute_seconds;
}

std::optional<TreeForecast> forecast_tree(const Context& ctx, const NearestTask& task, double brute_seconds,
                                          bool may_build) {
  if (!may_use_tree(ctx, task, brute_seconds)) return std::nullopt;
  const kernels::Prepared& index = *task.index;
  const kernels::Backend& backend = kernels::backend_of(ctx);
  if (index.tree.get(backend.device()) == nullptr && !backend.nearest().has_room_for_tree(ctx, task))
    return std::nullopt;
  const std::int64_t n = index.distinct_rows();
  const std::int64_t m = task.queries.rows();
  const kernels::Costs costs = costs_of(ctx, task);
  // How many rows hold k neighbors where a filter leaves most of them out, and how many of the distinct ones do.
  const double wanted =
      static_cast<double>(task.k) * static_cast<double>(index.table.rows()) /
      static_cast<double>(std::max<std::int64_t>(1, kernels::eligible_rows(task.filter, index.table.rows())));
  const auto k = static_cast<std::int64_t>(std::ceil(wanted * static_cast<double>(n) / index.table.rows()));
  // Longer lists are priced on the CPU alone, and those of a trial take no more than a share of the search's own.
  const bool is_priced = costs.tree_start == 0 && wanted <= static_cast<double>(task.k);
  if (k > n / (is_priced ? kFewestLists : kSampledLists)) return std::nullopt;
  NearestTask widest = task;  // the trial has no filter, but longer lists
  widest.k = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(wanted)), 1);
  if (!backend.nearest().can_use_tree(widest)) return std::nullopt;

  TreeForecast forecast;
  forecast.brute_seconds = brute_seconds;
  const auto search_seconds = [&] {
    const bool coarse_screen = !(forecast.brute_seconds > brute_seconds);
    return tree_search_seconds(ctx, task, forecast.rows_a_query, coarse_screen);
  };
  // A tree that stands is asked itself: by a few queries first, by more where they say that it may pay, by no more
  // where there is no doubt left.
  const auto ask = [&](const kernels::Tree& tree) {
    for (const std::int64_t count : kTrialQueries) {
      const std::int64_t most = std::max<std::int64_t>(m / 32, 1);
      const Sample queries(ctx, task.queries, spread(m, std::min(count, most)));
      const auto rows = touched(ctx, task, index, tree, queries.view, widest.k);
      if (!rows) return false;
      forecast.rows_a_query = *rows;
      forecast.seconds = search_seconds();
      if (count >= most || forecast.seconds > forecast.brute_seconds / 2) break;
      if (count > kTrialQueries[0] && forecast.seconds < kWideMargin * forecast.brute_seconds) break;
    }
    return true;
  };
  const auto ask_own = [&] {
    return ask(*index.tree.get_or_make(
        ctx, [&] { return backend.nearest().build_tree(ctx, index); }, backend.device()));
  };
  const bool has_samples = n >= kFewRows && k <= n / kSampledLists;
  const bool soon_made = may_build && build_seconds(costs, n) < kShareOfTrial * brute_seconds;
  const bool few_columns = task.queries.cols() <= kFewColumns;  // a tree nearly always wins there
  if (index.tree.get(backend.device()) != nullptr || ((!has_samples || few_columns) && soon_made)) {
    return ask_own() ? std::optional(forecast) : std::nullopt;
  }
  if (!has_samples) return std::nullopt;

  std::unique_ptr<Trial> trial;
  bool screen_tried = false;
  // What the tree competes with is found out only where the coarsest screen would beat it.
  const auto correct_brute = [&] {
    const bool corrected = forecast.brute_seconds > brute_seconds;
    if (screen_tried || corrected || forecast.seconds < brute_seconds || costs.brute_fine <= costs.brute) return;
    screen_tried = true;
    if (!trial->leaves_coarse_screen(ctx, task)) return;
    forecast.brute_seconds += costs.brute_fine - costs.brute;
    forecast.seconds = build_seconds(costs, n) + search_seconds();
  };
  double last_rows = 0;
  double last_size = 0;
  double exponent = 1;
  bool soon_built = false;
  for (const std::int64_t part : {64, 16}) {
    const std::int64_t size = std::max({n / part, std::int64_t{65536} / part, 8 * k});
    if (size > n / 2) return std::nullopt;
    const std::int64_t asked = std::clamp<std::int64_t>(m / 16, 1, kTrialQueries[part == 64 ? 1 : 2]);
    // The trial may touch every row of its sample, or the share of them that the smaller one did.
    NearestTask of_sample = task;
    of_sample.queries = task.queries.slice(0, asked);
    of_sample.self = false;
    const double rows_touched = static_cast<double>(size) * (last_size > 0 ? last_rows / last_size : 1);
    const double cost = build_seconds(costs, size) + tree_search_seconds(ctx, of_sample, rows_touched);
    const double share = task.queries.cols() <= kFewColumns ? kShareInFew : kShareOfTrial;
    if (cost > share * forecast.brute_seconds) return std::nullopt;
    trial.reset();
    trial = std::make_unique<Trial>(ctx, task, size, asked, std::max<std::int64_t>(k, 1));
    screen_tried = false;
    const auto sample_tree = backend.nearest().build_tree(ctx, trial->index);
    const auto found = touched(ctx, task, trial->index, *sample_tree, trial->queries.view, trial->k);
    if (!found) return std::nullopt;
    const auto sampled = static_cast<double>(size);
    if (last_rows > 0 && sampled > last_size) {
      exponent = std::clamp(std::log(*found / last_rows) / std::log(sampled / last_size), 0.0, 1.0);
    }
    last_rows = std::max(*found, 1.0);
    last_size = sampled;
    // However slowly it grows from here on: is it too much already?
    forecast.rows_a_query = last_rows * std::pow(static_cast<double>(n) / last_size, kSlowestGrowth);
    forecast.seconds = build_seconds(costs, n) + search_seconds();
    correct_brute();
    if (part == 64 && forecast.seconds > forecast.brute_seconds) {
      forecast.at_least = true;
      return forecast;
    }
    const double promise = forecast.brute_seconds - forecast.seconds;
    soon_built = may_build && build_seconds(costs, n) < kShareOfPromise * promise;
    if (soon_built) break;
  }
  // What is soon built need not be guessed.
  if (soon_built) {
    if (!ask_own()) return std::nullopt;
  } else {
    forecast.rows_a_query = last_rows * std::pow(static_cast<double>(n) / last_size, kGrowthSlows * exponent);
    forecast.seconds = build_seconds(costs, n) + search_seconds();
  }
  correct_brute();
  return forecast;
}

}  // namespace vicinal

// See blocks.hpp.
#include "nearest/blocks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/digest.hpp"
#include "base/output.hpp"
#include "io/atomic_file.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kFewestQueries = 64;  // of a block: a call's own work is for all of them
// Of the first block, which shows how long a row takes: the plan knows neither the lists' lengths nor all methods.
constexpr std::int64_t kMaxFirstQueries = 1024;
constexpr std::int64_t kMinBlocks = 16;
constexpr double kMaxGrowth = 4;  // from one block to the next

std::string file_of(std::int64_t begin) {
  return fmt::format("{}.part", begin);
}

void add_stats(SearchStats& sum, const SearchStats& more) {
  sum.distinct_rows = std::max(sum.distinct_rows, more.distinct_rows);  // of the table
  sum.survivors += more.survivors;
  sum.escalated += more.escalated;
  sum.uncertified += more.uncertified;
  sum.prepare_seconds += more.prepare_seconds;
  sum.search_seconds += more.search_seconds;
  sum.selection_seconds += more.selection_seconds;
}

}  // namespace

SearchBlocks::SearchBlocks(const Runtime& runtime, const NeighborsCommand& command, const NeighborTables& tables,
                           const WholeSearch& whole)
    : runtime_(runtime),
      command_(command),
      tables_(tables),
      whole_(whole),
      asked_(command.queries.empty() ? tables.rows.view : tables.asked.view),
      folder_(runtime.ctx, command.resume.folder, facts(), ".part") {
  read_blocks();
  if (done_ == 0) return;
  tell(runtime_, command_.common,
       fmt::format("resumed from '{}': {} of {} rows were searched before", command_.resume.folder, format_count(done_),
                   format_count(rows())));
}

std::vector<JobFact> SearchBlocks::facts() const {
  const Context& ctx = runtime_.ctx;
  std::vector<JobFact> facts = {{"search", name_of(whole_.kind), "search"}};
  const auto add_table = [&](const std::string& key, const std::string& file, const TableView& view) {
    const std::string name = "'" + file + "'";
    facts.push_back({key + "_rows", view.rows(), "number of rows in " + name});
    facts.push_back({key + "_cols", view.cols(), "number of columns in " + name});
    facts.push_back({key + "_dtype", name_of(view.dtype()), "type of the values in " + name});
    facts.push_back(values_of(key + "_digest", digest_of(ctx, view), name));
  };
  const bool self = command_.queries.empty();
  add_table("table", command_.table, tables_.rows.view);
  facts.push_back({"self", self, "",
                   self ? "that searches around other rows than those of the table"
                        : "that searches around the rows of the table itself"});
  if (!self) add_table("queries", command_.queries, tables_.asked.view);
  const SearchOptions& search = command_.search;
  facts.push_back({"metric", search.metric, "--metric"});
  facts.push_back({"p", search.metric == "minkowski" ? Json(format_number(search.p)) : Json(nullptr), "--p"});
  facts.insert(facts.end(), whole_.facts.begin(), whole_.facts.end());
  const bool filtered = !whole_.filter.empty();
  // Lists that --symmetric changes are those among all rows (RadiusCommand::run).
  const std::string changed = search.filter.empty() ? "" : ", which --symmetric needs";
  facts.push_back({"filtered", filtered, "",
                   filtered ? "that searches among all rows, not those of --filter alone"
                            : "that searches among the rows of --filter alone, not among all rows" + changed});
  const std::string filter = filtered ? "'" + search.filter + "'" : "--filter";
  facts.push_back(values_of("filter_digest", filtered ? Json(digest_of(whole_.filter)) : Json(nullptr), filter));
  return facts;
}

double SearchBlocks::share(std::int64_t row) const {
  return static_cast<double>(row) / static_cast<double>(rows());
}

/// The blocks of an earlier run follow each other from row 0 on. One whose file was removed is searched again, and so
/// is the one after them, whose file may be there already.
void SearchBlocks::read_blocks() {
  std::vector<std::string> files;
  const Json kept_blocks = folder_.state().value("blocks", Json::array());
  if (!kept_blocks.is_array()) folder_.refuse_record();
  for (const Json& kept : kept_blocks) {
    const bool is_block =
        kept.is_object() && kept.value("end", Json()).is_number_integer() && kept.value("digest", Json()).is_string();
    if (!is_block) folder_.refuse_record();
    Block block{blocks_.empty() ? 0 : blocks_.back().end, kept.value("end", std::int64_t{0}),
                kept.value("digest", std::string())};
    if (block.end <= block.begin || block.end > rows()) folder_.refuse_record();
    const std::string name = file_of(block.begin);
    std::error_code error;
    block.is_there = !block.digest.empty() && std::filesystem::exists(folder_.file(name), error);
    runtime_.ctx.report("compare", share(block.begin));
    if (block.is_there && digest_of_file(runtime_.ctx, folder_.file(name)) != block.digest) {
      folder_.refuse_file(name, "remove it, and its rows are searched again");
    }
    if (block.is_there) done_ += block.end - block.begin;
    blocks_.push_back(std::move(block));
    files.push_back(name);
  }
  files.push_back(file_of(blocks_.empty() ? 0 : blocks_.back().end));
  folder_.require_only(files);
}

std::int64_t SearchBlocks::first_size() const {
  if (command_.resume.seconds == 0) return kFewestQueries;
  const std::int64_t most = std::clamp(rows() / kMinBlocks, kFewestQueries, kMaxFirstQueries);
  const double expected = whole_.plan.expected_seconds;
  if (!(expected > 0)) return most;
  const double fitting = static_cast<double>(rows()) * (command_.resume.seconds / expected);
  return fitting < static_cast<double>(most) ? std::max(kFewestQueries, static_cast<std::int64_t>(fitting)) : most;
}

void SearchBlocks::save() {
  Json kept = Json::array();
  for (const Block& block : blocks_) kept.push_back({{"end", block.end}, {"digest", block.digest}});
  folder_.save({{"blocks", std::move(kept)}});
}

/// The file appears while the folder is this process's.
void SearchBlocks::search(Block& block) {
  const std::int64_t size = block.end - block.begin;
  runtime_.progress->set_range("search", share(done_), share(done_ + size));
  const std::filesystem::path path = folder_.file(file_of(block.begin));
  const PartOptions place{0, block.begin, command_.queries.empty(), tables_.rows.view.rows(), 0};
  io::OutputGroup file(runtime_.ctx.cancel_token());
  whole_.search(asked_.slice(block.begin, block.end), place, path);
  folder_.require_lock();
  file.commit();
  block.digest = digest_of_file(runtime_.ctx, path);
  block.is_there = true;
  done_ += size;
}

void SearchBlocks::run() {
  for (Block& block : blocks_) {
    if (block.is_there) continue;
    if (!block.digest.empty()) {  // of a file that is gone; the new one has other seconds in it
      block.digest.clear();
      save();
    }
    search(block);
    save();
  }
  std::int64_t size = first_size();
  for (std::int64_t begin = blocks_.empty() ? 0 : blocks_.back().end; begin < rows();) {
    const auto start = std::chrono::steady_clock::now();
    Block block{begin, std::min(rows(), begin + size), {}};
    search(block);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto searched = static_cast<double>(block.end - block.begin);
    begin = block.end;
    blocks_.push_back(std::move(block));
    save();
    const double fitting = searched * (command_.resume.seconds / std::max(seconds.count(), 1e-6));
    const double next = std::clamp(fitting, searched / kMaxGrowth, searched * kMaxGrowth);
    size =
        std::clamp(static_cast<std::int64_t>(std::min(next, 0x1p62)), kFewestQueries, std::max(rows(), kFewestQueries));
  }
  runtime_.progress->set_range({}, 0, 1);
}

PartSource SearchBlocks::open(const Context& ctx, const Block& block) const {
  const std::string name = file_of(block.begin);
  const char* const remedy = "remove it, and its rows are searched again";
  if (digest_of_file(ctx, folder_.file(name)) != block.digest) folder_.refuse_file(name, remedy);
  PartSource source = open_part(ctx, folder_.file(name));
  const PartInfo& info = source.info;
  const bool fits = info.kind == whole_.kind && info.place.first_query == block.begin &&
                    info.queries == block.end - block.begin && info.rows == tables_.rows.view.rows();
  if (!fits) folder_.refuse_file(name, remedy);
  return source;
}

void SearchBlocks::show_reading(const Block& block) const {
  runtime_.progress->set_range("merge", share(block.begin), share(block.end));
  runtime_.ctx.report("merge", 0);
}

void SearchBlocks::finish() {
  std::vector<std::string> files;
  for (const Block& block : blocks_) files.push_back(file_of(block.begin));
  folder_.finish(files);
}

RadiusSummary SearchBlocks::lists(const Context& ctx, const TakeLists& take) const {
  RadiusSummary sum{rows(), tables_.rows.view.rows(), 0, whole_.plan, {}};
  for (const Block& block : blocks_) {
    show_reading(block);
    const PartSource source = open(ctx, block);
    const RadiusSummary found =
        merge_batches(ctx, std::span<const PartSource>(&source, 1),
                      [&](std::int64_t first, const NeighborGraph& lists) { take(block.begin + first, lists); });
    sum.neighbors += found.neighbors;
    add_stats(sum.stats, found.stats);
  }
  runtime_.progress->set_range({}, 0, 1);
  return sum;
}

NeighborCounts SearchBlocks::counts(const Context& ctx) const {
  NeighborCounts all;
  all.plan = whole_.plan;
  all.counts.reserve(static_cast<std::size_t>(rows()));
  for (const Block& block : blocks_) {
    show_reading(block);
    const PartSource source = open(ctx, block);
    const NeighborCounts found = merge_counts(ctx, std::span<const PartSource>(&source, 1));
    all.counts.insert(all.counts.end(), found.counts.begin(), found.counts.end());
    add_stats(all.stats, found.stats);
  }
  runtime_.progress->set_range({}, 0, 1);
  return all;
}

NeighborGraph nearest_of(const Context& ctx, const SearchBlocks& blocks, const Plan& plan, std::int64_t k,
                         double max_radius) {
  const bool has_limit = max_radius < std::numeric_limits<double>::infinity();
  NeighborGraph graph;
  graph.ids.reserve(static_cast<std::size_t>(blocks.rows() * k));
  graph.distances.reserve(graph.ids.capacity());
  if (has_limit) graph.offsets.push_back(0);
  const auto take = [&](std::int64_t first, const NeighborGraph& lists) {
    if (first == 0) {
      graph.metric = lists.metric;
      graph.p = lists.p;
    }
    for (std::int64_t row = 0; row < lists.rows; ++row) {
      const auto ids = lists.ids_of(row);
      const auto distances = lists.distances_of(row);
      const auto end = std::find_if(distances.begin(), distances.end(), [&](double x) { return !(x <= max_radius); });
      const auto kept = has_limit ? end - distances.begin() : std::ssize(distances);
      graph.ids.insert(graph.ids.end(), ids.begin(), ids.begin() + kept);
      graph.distances.insert(graph.distances.end(), distances.begin(), distances.begin() + kept);
      if (has_limit) graph.offsets.push_back(std::ssize(graph.ids));
    }
    ctx.check_cancelled();
  };
  const RadiusSummary found = blocks.lists(ctx, take);
  graph.rows = found.rows;
  graph.table_rows = found.table_rows;
  graph.k = has_limit ? 0 : k;
  graph.plan = plan;
  graph.stats = found.stats;
  return graph;
}

}  // namespace vicinal::cli

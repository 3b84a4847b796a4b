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

namespace vicinal::cli {
namespace {

constexpr std::int64_t kFewestQueries = 64;     // of a block: a call's own work is for all of them
constexpr std::int64_t kUnknownQueries = 1024;  // of the first block, where the plan expects no time
constexpr double kMaxGrowth = 4;                // from one block to the next

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
    facts.push_back({key + "_digest", digest_of(ctx, view), name, true});
  };
  const bool self = command_.queries.empty();
  add_table("table", command_.table, tables_.rows.view);
  facts.push_back({"self", self, "table searched within itself"});
  if (!self) add_table("queries", command_.queries, tables_.asked.view);
  const SearchOptions& search = command_.search;
  facts.push_back({"metric", search.metric, "--metric"});
  facts.push_back({"p", search.metric == "minkowski" ? Json(search.p) : Json(nullptr), "--p"});
  facts.insert(facts.end(), whole_.facts.begin(), whole_.facts.end());
  const bool filtered = !whole_.filter.empty();
  facts.push_back({"filtered", filtered, "use of --filter"});
  const std::string filter = filtered ? "'" + search.filter + "'" : "--filter";
  facts.push_back({"filter_digest", filtered ? Json(digest_of(whole_.filter)) : Json(nullptr), filter, true});
  return facts;
}

/// The blocks of an earlier run follow each other from row 0 on. One whose file was removed is searched again, and so
/// is the one after them, whose file may be there already.
void SearchBlocks::read_blocks() {
  std::vector<std::string> files;
  for (const Json& kept : folder_.state().value("blocks", Json::array())) {
    Block block{blocks_.empty() ? 0 : blocks_.back().end, kept.value("end", std::int64_t{0}),
                kept.value("digest", std::string())};
    const std::string name = file_of(block.begin);
    std::error_code error;
    block.is_there = std::filesystem::exists(folder_.file(name), error);
    if (block.is_there && digest_of_file(runtime_.ctx, folder_.file(name)) != block.digest) {
      folder_.refuse_file(name, "remove it, and its rows are searched again");
    }
    if (block.end <= block.begin || block.end > rows())
      folder_.refuse_file("job.json", "remove the folder to begin anew");
    if (block.is_there) done_ += block.end - block.begin;
    blocks_.push_back(std::move(block));
    files.push_back(name);
  }
  files.push_back(file_of(blocks_.empty() ? 0 : blocks_.back().end));
  folder_.require_only(files);
}

std::int64_t SearchBlocks::first_size() const {
  const double expected = whole_.plan.expected_seconds;
  const double size = expected > 0 ? static_cast<double>(rows()) * (command_.resume.seconds / expected)
                                   : static_cast<double>(kUnknownQueries);
  return size < static_cast<double>(rows()) ? std::max(kFewestQueries, static_cast<std::int64_t>(size)) : rows();
}

void SearchBlocks::save() {
  Json kept = Json::array();
  for (const Block& block : blocks_) kept.push_back({{"end", block.end}, {"digest", block.digest}});
  folder_.save({{"blocks", std::move(kept)}});
}

void SearchBlocks::search(Block& block) {
  const auto share = [this](std::int64_t part) { return static_cast<double>(part) / static_cast<double>(rows()); };
  runtime_.progress->set_range("search", share(done_), share(done_ + block.end - block.begin));
  const std::filesystem::path path = folder_.file(file_of(block.begin));
  const PartOptions place{0, block.begin, command_.queries.empty(), tables_.rows.view.rows(), 0};
  whole_.search(asked_.slice(block.begin, block.end), place, path);
  block.digest = digest_of_file(runtime_.ctx, path);
  block.is_there = true;
  done_ += block.end - block.begin;
}

void SearchBlocks::run() {
  for (Block& block : blocks_) {
    if (block.is_there) continue;
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
  PartSource source = open_part(ctx, folder_.file(name));
  const PartInfo& info = source.info;
  const bool fits = info.kind == whole_.kind && info.place.first_query == block.begin &&
                    info.queries == block.end - block.begin && info.rows == tables_.rows.view.rows();
  if (!fits) folder_.refuse_file(name, "remove it, and its rows are searched again");
  return source;
}

RadiusSummary SearchBlocks::lists(const Context& ctx, const TakeLists& take) const {
  RadiusSummary sum{rows(), tables_.rows.view.rows(), 0, whole_.plan, {}};
  for (const Block& block : blocks_) {
    const PartSource source = open(ctx, block);
    const RadiusSummary found =
        merge_batches(ctx, std::span<const PartSource>(&source, 1),
                      [&](std::int64_t first, const NeighborGraph& lists) { take(block.begin + first, lists); });
    sum.neighbors += found.neighbors;
    add_stats(sum.stats, found.stats);
  }
  return sum;
}

NeighborCounts SearchBlocks::counts(const Context& ctx) const {
  NeighborCounts all;
  all.plan = whole_.plan;
  all.counts.reserve(static_cast<std::size_t>(rows()));
  for (const Block& block : blocks_) {
    const PartSource source = open(ctx, block);
    const NeighborCounts found = merge_counts(ctx, std::span<const PartSource>(&source, 1));
    all.counts.insert(all.counts.end(), found.counts.begin(), found.counts.end());
    add_stats(all.stats, found.stats);
  }
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

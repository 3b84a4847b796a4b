// See blocks.hpp.
#include "nearest/blocks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "base/digest.hpp"
#include "base/output.hpp"
#include "io/atomic_file.hpp"
#include "ops/common/together.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kFewestQueries = 64;  // of a block: a call's own work is for all of them
// Of the first block, which shows how long a row takes: the plan knows neither the lists' lengths nor all methods.
constexpr std::int64_t kMaxFirstQueries = 1024;
constexpr std::int64_t kMinBlocks = 16;
constexpr double kMaxGrowth = 4;  // from one block to the next
constexpr std::int64_t kMaxRowsRead = std::int64_t{1}
                                      << 20;  // of a block at a time; counts and offsets take 8 MiB each

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

constexpr std::uint64_t kEntryBytes = 16;  // of an id and a key

/// Bytes of the lists of some rows of a block.
std::uint64_t bytes_of(const PartSource& block, std::int64_t begin, std::int64_t end) {
  const PartInfo& info = block.info;
  if (info.kind == PartKind::count) return static_cast<std::uint64_t>(end - begin) * sizeof(std::int64_t);
  const std::int64_t entries = info.kind == PartKind::radius ? block.neighbors(begin, end) : (end - begin) * info.k;
  return static_cast<std::uint64_t>(entries) * kEntryBytes;
}

}  // namespace

SearchBlocks::SearchBlocks(const Runtime& runtime, const NeighborsCommand& command, const NeighborTables& tables,
                           const WholeSearch& whole, Communicator* ranks)
    : runtime_(runtime),
      command_(command),
      tables_(tables),
      whole_(whole),
      asked_(command.queries.empty() ? tables.rows.view : tables.asked.view),
      ranks_(ranks != nullptr ? *ranks : alone_) {
  ops::together(ranks_, [&] {
    if (ranks_.rank() > 0) return;
    folder_.emplace(runtime.ctx, command.resume.folder, facts(), ".part");
    read_blocks();
  });
  share_blocks();
  if (done_ == 0 || ranks_.rank() > 0) return;
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

std::filesystem::path SearchBlocks::file(const Block& block) const {
  return std::filesystem::path(command_.resume.folder) / file_of(block.begin);
}

double SearchBlocks::share(std::int64_t row) const {
  return static_cast<double>(row) / static_cast<double>(rows());
}

/// The blocks of an earlier run follow each other from row 0 on. One whose file was removed is searched again, and so
/// is the one after them, whose file may be there already.
void SearchBlocks::read_blocks() {
  std::vector<std::string> files;
  const Json kept_blocks = folder_->state().value("blocks", Json::array());
  if (!kept_blocks.is_array()) folder_->refuse_record();
  for (const Json& kept : kept_blocks) {
    const bool is_block =
        kept.is_object() && kept.value("end", Json()).is_number_integer() && kept.value("digest", Json()).is_string();
    if (!is_block) folder_->refuse_record();
    Block block{blocks_.empty() ? 0 : blocks_.back().end, kept.value("end", std::int64_t{0}),
                kept.value("digest", std::string())};
    if (block.end <= block.begin || block.end > rows()) folder_->refuse_record();
    const std::string name = file_of(block.begin);
    std::error_code error;
    block.is_there = !block.digest.empty() && std::filesystem::exists(folder_->file(name), error);
    runtime_.ctx.report("compare", share(block.begin));
    if (block.is_there && digest_of_file(runtime_.ctx, folder_->file(name)) != block.digest) {
      folder_->refuse_file(name, "remove it, and its rows are searched again");
    }
    if (block.is_there) done_ += block.end - block.begin;
    blocks_.push_back(std::move(block));
    files.push_back(name);
  }
  files.push_back(file_of(blocks_.empty() ? 0 : blocks_.back().end));
  folder_->require_only(files);
}

/// Sends what rank 0 has read to the other ranks.
void SearchBlocks::share_blocks() {
  if (ranks_.size() == 1) return;
  Json sent = Json::array();
  for (const Block& block : blocks_) sent.push_back({block.end, block.digest, block.is_there});
  std::string text = sent.dump();
  std::array<std::int64_t, 1> size = {std::ssize(text)};
  ranks_.broadcast(std::as_writable_bytes(std::span(size)), 0);
  text.resize(static_cast<std::size_t>(size[0]));
  ranks_.broadcast(std::as_writable_bytes(std::span(text)), 0);
  if (ranks_.rank() == 0) return;
  for (const Json& block : Json::parse(text)) {
    blocks_.push_back({blocks_.empty() ? 0 : blocks_.back().end, block[0], block[1], block[2]});
    if (blocks_.back().is_there) done_ += blocks_.back().end - blocks_.back().begin;
  }
}

/// Of blocks that the ranks have searched, one each.
void SearchBlocks::share_digests(const std::vector<std::size_t>& numbers) {
  constexpr std::size_t kRoom = 64;  // a digest has fewer characters
  const auto rank = static_cast<std::size_t>(ranks_.rank());
  std::string own = rank < numbers.size() ? blocks_[numbers[rank]].digest : "";
  own.resize(kRoom, ' ');
  std::string all(kRoom * static_cast<std::size_t>(ranks_.size()), ' ');
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks_.size()), kRoom);
  ranks_.all_gather(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string digest = all.substr(i * kRoom, kRoom);
    blocks_[numbers[i]].digest = digest.substr(0, digest.find(' '));
  }
}

std::int64_t SearchBlocks::first_size() const {
  if (command_.resume.seconds == 0) return kFewestQueries;
  const std::int64_t planned = whole_.planned_rows > 0 ? whole_.planned_rows : rows();
  const std::int64_t most = std::clamp(planned / kMinBlocks, kFewestQueries, kMaxFirstQueries);
  const double expected = whole_.plan.expected_seconds;
  if (!(expected > 0)) return most;
  const double fitting = static_cast<double>(planned) * (command_.resume.seconds / expected);
  return fitting < static_cast<double>(most) ? std::max(kFewestQueries, static_cast<std::int64_t>(fitting)) : most;
}

void SearchBlocks::save() {
  ops::together(ranks_, [&] {
    if (!folder_) return;
    Json kept = Json::array();
    for (const Block& block : blocks_) kept.push_back({{"end", block.end}, {"digest", block.digest}});
    folder_->save({{"blocks", std::move(kept)}});
  });
}

/// Each rank searches for the rows of one block; the last ranks may have none. The files appear when all are written,
/// while the folder is this job's. The record has the blocks of several ranks before.
void SearchBlocks::search(const std::vector<std::size_t>& numbers) {
  std::int64_t size = 0;
  for (const std::size_t number : numbers) size += blocks_[number].end - blocks_[number].begin;
  runtime_.progress->set_range("search", share(done_), share(done_ + size));
  const auto rank = static_cast<std::size_t>(ranks_.rank());
  Block* const own = rank < numbers.size() ? &blocks_[numbers[rank]] : nullptr;
  io::OutputGroup files(runtime_.ctx.cancel_token());
  ops::together(ranks_, [&] {
    if (own == nullptr) return;
    const PartOptions place{0, own->begin, command_.queries.empty(), tables_.rows.view.rows(), 0};
    whole_.search(asked_.slice(own->begin, own->end), place, file(*own));
  });
  ops::together(ranks_, [&] {
    if (folder_) folder_->require_lock();
  });
  ops::together(ranks_, [&] {
    files.commit();
    if (own != nullptr) own->digest = digest_of_file(runtime_.ctx, file(*own));
  });
  share_digests(numbers);
  ops::together(ranks_, [&] {  // a rank on another host may have a folder of its own
    if (!folder_) return;
    for (const std::size_t number : numbers) {
      std::error_code error;
      const std::filesystem::path path = file(blocks_[number]);
      if (std::filesystem::exists(path, error)) continue;
      throw Error(ErrorCode::io,
                  fmt::format("--resume: '{}' is not there; do all hosts share the folder?", path.string()));
    }
  });
  for (const std::size_t number : numbers) blocks_[number].is_there = true;
  done_ += size;
}

/// More ranks than those that made a block may have less memory each.
void SearchBlocks::cut_large_blocks() {
  if (whole_.planned_rows <= 0) return;
  std::vector<Block> cut;
  for (Block& block : blocks_) {
    if (block.is_there || block.end - block.begin <= whole_.planned_rows) {
      cut.push_back(std::move(block));
      continue;
    }
    for (std::int64_t begin = block.begin; begin < block.end; begin = cut.back().end) {
      cut.push_back({begin, std::min(block.end - begin, whole_.planned_rows) + begin, {}});
    }
  }
  const bool is_other = cut.size() != blocks_.size();
  blocks_ = std::move(cut);
  if (is_other) save();
}

void SearchBlocks::run() {
  const auto ranks = static_cast<std::size_t>(ranks_.size());
  cut_large_blocks();
  for (std::size_t next = 0; next < blocks_.size();) {
    std::vector<std::size_t> missing;
    bool is_gone = false;
    for (; next < blocks_.size() && missing.size() < ranks; ++next) {
      Block& block = blocks_[next];
      if (block.is_there) continue;
      missing.push_back(next);
      is_gone = is_gone || !block.digest.empty();
      block.digest.clear();
    }
    if (is_gone) save();  // new files have other seconds in them
    if (missing.empty()) break;
    search(missing);
    save();
  }
  std::array<std::int64_t, 1> size = {first_size()};  // of a rank's block
  for (std::int64_t begin = blocks_.empty() ? 0 : blocks_.back().end; begin < rows();) {
    ranks_.broadcast(std::as_writable_bytes(std::span(size)), 0);
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t each = std::min(size[0], (rows() - begin + ranks_.size() - 1) / ranks_.size());
    std::vector<std::size_t> numbers;
    for (; begin < rows() && numbers.size() < ranks; begin = blocks_.back().end) {
      numbers.push_back(blocks_.size());
      blocks_.push_back({begin, std::min(rows(), begin + each), {}});
    }
    if (ranks > 1) save();  // several files may appear before their digests are recorded
    search(numbers);
    save();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const auto searched = static_cast<double>(each);
    const double fitting = searched * (command_.resume.seconds / std::max(seconds.count(), 1e-6));
    const double next = std::clamp(fitting, searched / kMaxGrowth, searched * kMaxGrowth);
    size[0] =
        std::clamp(static_cast<std::int64_t>(std::min(next, 0x1p62)), kFewestQueries, std::max(rows(), kFewestQueries));
  }
  runtime_.progress->set_range({}, 0, 1);
}

PartSource SearchBlocks::open(const Context& ctx, const Block& block) const {
  const auto refuse = [&] { refuse_kept_file(file(block), "remove it, and its rows are searched again"); };
  if (digest_of_file(ctx, file(block)) != block.digest) refuse();
  PartSource source = open_part(ctx, file(block));
  const PartInfo& info = source.info;
  const bool fits = info.kind == whole_.kind && info.place.first_query == block.begin &&
                    info.queries == block.end - block.begin && info.rows == tables_.rows.view.rows();
  if (!fits) refuse();
  return source;
}

void SearchBlocks::show_reading(const Block& block) const {
  runtime_.progress->set_range("merge", share(block.begin), share(block.end));
  runtime_.ctx.report("merge", 0);
}

void SearchBlocks::finish() {
  if (!folder_) return;
  std::vector<std::string> files;
  for (const Block& block : blocks_) files.push_back(file_of(block.begin));
  folder_->finish(files);
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

/// The number of neighbors of rows [begin, end), where all of them have lists.
std::int64_t SearchBlocks::neighbors(const Context& ctx, std::int64_t begin, std::int64_t end,
                                     const PartInfo& info) const {
  if (whole_.kind == PartKind::count) return 0;
  if (whole_.kind == PartKind::knn) return (end - begin) * info.k;
  std::int64_t sum = 0;
  for (const Block& block : blocks_) {
    const std::int64_t first = std::max(begin, block.begin) - block.begin;
    const std::int64_t last = std::min(end, block.end) - block.begin;
    if (first < last) sum += open(ctx, block).neighbors(first, last);
  }
  return sum;
}

NeighborPart SearchBlocks::part(const Context& ctx, std::int64_t begin, std::int64_t end) const {
  NeighborPart all;
  all.plan = whole_.plan;
  all.info = open(ctx, blocks_.front()).info;
  const auto require = [&](std::uint64_t bytes) {
    if (bytes <= ctx.memory_limit()) return;
    throw Error(ErrorCode::over_memory, fmt::format("{}: the lists of a rank need {} bytes, more than the memory limit "
                                                    "of {}",
                                                    name_of(whole_.kind), bytes, ctx.memory_limit()));
  };
  // Exactly: vectors that grow would take up to three times as much.
  const auto count = static_cast<std::size_t>(end - begin);
  const auto total = static_cast<std::size_t>(neighbors(ctx, begin, end, all.info));
  const std::uint64_t held = total * kEntryBytes + (count + 1) * sizeof(std::int64_t);
  require(held);
  all.ids.reserve(total);
  all.keys.reserve(total);
  if (whole_.kind == PartKind::radius) {
    all.offsets.reserve(count + 1);
    all.offsets.push_back(0);
  }
  if (whole_.kind == PartKind::count) all.counts.reserve(count);
  for (const Block& block : blocks_) {
    const std::int64_t last = std::min(end, block.end) - block.begin;
    std::int64_t first = std::max(begin, block.begin) - block.begin;
    if (first >= last) continue;
    const PartSource source = open(ctx, block);
    while (first < last) {
      ctx.check_cancelled();
      std::int64_t to = std::min(last, first + kMaxRowsRead);
      const auto bytes = [&] { return bytes_of(source, first, to); };
      while (to > first + 1 && bytes() > kBytesOfBlocks / 2) to = first + (to - first) / 2;
      if (bytes() > kBytesOfBlocks / 2) require(held + bytes());
      const NeighborPart piece = source.read(first, to);
      for (std::size_t i = 1; i < piece.offsets.size(); ++i) {
        all.offsets.push_back(std::ssize(all.ids) + piece.offsets[i]);
      }
      all.ids.insert(all.ids.end(), piece.ids.begin(), piece.ids.end());
      all.keys.insert(all.keys.end(), piece.keys.begin(), piece.keys.end());
      all.counts.insert(all.counts.end(), piece.counts.begin(), piece.counts.end());
      first = to;
    }
    // A block of several ranks counts for the one that has its first row.
    if (block.begin >= begin) add_stats(all.stats, source.stats);
    all.stats.distinct_rows = std::max(all.stats.distinct_rows, source.stats.distinct_rows);
  }
  all.info.place.first_query = begin;
  all.info.place.total_queries = rows();
  all.info.queries = end - begin;
  return all;
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

// See parts_of_ranks.hpp. What a rank does alone is a phase (ops/common/together.hpp): if one fails, all of them end.
#include "nearest/parts_of_ranks.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/input.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"
#include "base/planned_inputs.hpp"
#include "base/ranks.hpp"
#include "io/atomic_file.hpp"
#include "nearest/blocks.hpp"
#include "nearest/manifest.hpp"
#include "nearest/shard.hpp"
#include "ops/common/together.hpp"
#include "vicinal/shards.hpp"

namespace vicinal::cli {
namespace {

/// A rank's share of so many rows or queries.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

Share share_of(std::int64_t count, int rank, int ranks) {
  const auto cut = [&](std::int64_t number) {  // without count * number, which may not fit 64 bits
    return count / ranks * number + count % ranks * number / ranks;
  };
  return {cut(rank), cut(rank + 1)};
}

/// Makes the folder if it is missing.
void make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directory(std::filesystem::path(folder).parent_path(), failed);
  if (failed) {
    throw Error(ErrorCode::io, fmt::format("-o: the folder '{}' cannot be made: {}", folder, failed.message()));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw Error(ErrorCode::io, fmt::format("-o: the folder '{}' cannot be written: {}", folder, std::strerror(errno)));
  }
}

/// A folder as a path without links; also of one that is not there yet.
std::filesystem::path resolved(const std::string& folder) {
  std::error_code failed;
  std::filesystem::path found = std::filesystem::absolute(folder, failed);
  if (!failed) found = std::filesystem::weakly_canonical(found, failed);
  if (failed) return folder;
  return found.has_filename() ? found : found.parent_path();
}

/// The files of --resume are removed when the parts are complete, and both have names such as "0.part".
void require_other_folder(const std::string& output, const std::string& kept) {
  std::error_code failed;
  if (!std::filesystem::equivalent(output, kept, failed) && resolved(output) != resolved(kept)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--resume: '{}' is the folder of -o; name another one for each", kept));
}

/// One rank's part of the command.
class RankOfSearch {
 public:
  RankOfSearch(const NeighborsCommand& command, const SearchOfRanks& search, const RankRuntime& own)
      : command_(command), search_(search), own_(own), inputs_(own.runtime, own.common) {}

  void run(std::chrono::steady_clock::time_point start);

 private:
  void read();
  void agree();
  [[nodiscard]] Plan plan();
  [[nodiscard]] NeighborPart find();
  void run_resumed(std::chrono::steady_clock::time_point start);
  [[nodiscard]] Plan plan_in_whole(const Share& mine);
  [[nodiscard]] Plan agreed(Plan plan);
  [[nodiscard]] WholeSearch search_of_blocks(const Index& index, const Plan& plan);
  void deliver(const NeighborPart& part, std::chrono::steady_clock::time_point start);
  void write(const NeighborPart& part);
  void tell(const NeighborPart& part, std::int64_t neighbors, std::chrono::steady_clock::time_point start) const;
  [[nodiscard]] bool is_within() const { return command_.queries.empty(); }
  [[nodiscard]] const char* name() const { return search_.kind == PartKind::knn ? "knn" : "radius"; }
  template <class Phase>
  void together(const Phase& phase) {
    ops::together(own_.ranks, phase);
  }
  [[nodiscard]] Share share(std::int64_t count) const { return share_of(count, own_.ranks.rank(), own_.ranks.size()); }

  const NeighborsCommand& command_;
  SearchOfRanks search_;
  const RankRuntime& own_;
  PlannedInputs inputs_;
  std::optional<Context> ctx_;  // what the inputs leave
  NeighborTables tables_;
  std::vector<std::uint64_t> whole_filter_;
  std::vector<std::uint64_t> filter_;  // of the rank's rows
  TableView shard_;
  std::int64_t first_row_ = 0;
  TableView asked_;
  std::vector<std::string> files_;
};

void RankOfSearch::read() {
  if (!command_.row_range.empty()) {
    throw Error(ErrorCode::invalid_argument, "--rows: needs a file for the part, -o FILE.part");
  }
  if (search_.nearest.max_radius < std::numeric_limits<double>::infinity()) {
    throw Error(ErrorCode::invalid_argument, "--max-radius: parts have lists of k; leave it out with -o DIR/");
  }
  command_.resume.check();
  if (command_.resume.any()) require_other_folder(command_.output, command_.resume.folder);
  refuse_for_parts(command_, "-o DIR/");
  const Context& ctx = own_.runtime.ctx;
  const ReadOptions reading = command_.reading();
  const int ranks = own_.ranks.size();
  const TableView shape = inputs_.add_table(command_.table, reading, ranks);
  const TableView shape_asked =
      command_.queries.empty() ? TableView{} : inputs_.add_table(command_.queries, reading, ranks);
  inputs_.add(command_.missing.fill_bytes(ctx, shape, shape_asked));
  if (command_.resume.any()) inputs_.add(kBytesOfBlocks);
  ctx_ = inputs_.fit(name(), [](const Context&) { return 0; });  // the search makes a plan with all ranks
  tables_ = command_.read(own_.runtime);
  const TableView& rows = tables_.rows.view;
  if (rows.rows() < own_.ranks.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("mpirun: {} ranks, but {} has {} rows, and each rank needs one", own_.ranks.size(),
                            command_.table, rows.rows()));
  }
  const Share mine = share(rows.rows());
  first_row_ = mine.begin;
  shard_ = rows.slice(mine.begin, mine.end);
  whole_filter_ = read_filter(ctx, command_.search.filter, rows.rows());
  if (command_.resume.any()) {
    search_.nearest.filter = search_.within.filter = whole_filter_;
    return;
  }
  filter_ = filter_of_rows(whole_filter_, mine.begin, mine.end);
  search_.nearest.filter = search_.within.filter = filter_;
  if (command_.queries.empty()) return;
  const Share queries = share(tables_.asked.view.rows());
  asked_ = tables_.asked.view.slice(queries.begin, queries.end);
}

/// All ranks must see the same files and write to the same folders.
void RankOfSearch::agree() {
  const std::string& kept = command_.resume.folder;
  const std::array<std::int64_t, 4> own = {tables_.rows.view.rows(), tables_.asked.view.rows(),
                                           std::ssize(command_.output), std::ssize(kept)};
  std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(own_.ranks.size()));
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(own_.ranks.size()), sizeof own);
  own_.ranks.all_gather(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
  const auto refuse_folder = [](const char* option) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: is not the folder of rank 0; all ranks write to the same folder", option));
  };
  together([&] {
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (all[at] == all[at % own.size()]) continue;
      if (at % own.size() >= 2) refuse_folder(at % own.size() == 2 ? "-o" : "--resume");
      throw Error(ErrorCode::bad_data,
                  fmt::format("{}: has {} rows for rank 0, but {} for rank {}; it has changed, or is another file",
                              at % own.size() == 0 ? command_.table : command_.queries, all[at % own.size()], all[at],
                              at / own.size()));
    }
  });
  std::string of_first = command_.output + kept;  // as long on every rank
  own_.ranks.broadcast(std::as_writable_bytes(std::span(of_first)), 0);
  together([&] {
    if (!of_first.starts_with(command_.output)) refuse_folder("-o");
    if (!of_first.ends_with(kept)) refuse_folder("--resume");
  });
}

/// The parts appear when all of them are written, and the manifest when all have appeared.
void RankOfSearch::write(const NeighborPart& part) {
  const std::string& folder = command_.output;
  std::vector<std::int64_t> check_sums(static_cast<std::size_t>(own_.ranks.size()), 0);
  const bool is_first = own_.ranks.rank() == 0;
  {
    io::OutputGroup parts(own_.runtime.ctx.cancel_token());
    std::array<std::int64_t, 1> check_sum = {0};
    together([&] {
      const std::string file = fmt::format("{}.part", part.info.place.first_query);
      if (part.info.queries > 0) {
        check_sum[0] = write_part(own_.runtime.ctx, std::filesystem::path(folder) / file, part);
      }
    });
    const std::vector<std::int64_t> sizes(check_sums.size(), sizeof check_sum);
    own_.ranks.all_gather(std::as_bytes(std::span(check_sum)), sizes, std::as_writable_bytes(std::span(check_sums)));
    together([&] {  // of an earlier search: it must not name these parts
      if (!is_first) return;
      const std::string old = manifest_in(folder);
      std::error_code failed;
      if (std::filesystem::is_directory(old, failed)) {
        throw Error(ErrorCode::io, fmt::format("-o: {}: is a folder", old));
      }
      std::filesystem::remove(old, failed);
      if (failed) throw Error(ErrorCode::io, fmt::format("-o: {}: {}", old, failed.message()));
    });
    together([&] { parts.commit(); });
  }
  Manifest manifest(name(), command_.table, command_.queries, part.info);
  for (int rank = 0; rank < own_.ranks.size(); ++rank) {
    const Share theirs = share_of(part.info.place.total_queries, rank, own_.ranks.size());
    if (theirs.begin == theirs.end) continue;
    files_.push_back(fmt::format("{}.part", theirs.begin));
    manifest.add(files_.back(), theirs.begin, theirs.end - theirs.begin,
                 static_cast<std::uint32_t>(check_sums[static_cast<std::size_t>(rank)]));
  }
  OutputFiles last;
  together([&] {
    if (!is_first) return;
    for (const std::string& file : files_) {  // a rank on another host may have a folder of its own
      const std::filesystem::path path = std::filesystem::path(folder) / file;
      if (std::filesystem::exists(path)) continue;
      throw Error(ErrorCode::io, fmt::format("-o: {} is not there; do all hosts share the folder?", path.string()));
    }
    manifest.write(folder);
    last.commit();
  });
}

void RankOfSearch::tell(const NeighborPart& part, std::int64_t neighbors,
                        std::chrono::steady_clock::time_point start) const {
  if (own_.ranks.rank() > 0) return;
  own_.runtime.progress->clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::int64_t queries = part.info.place.total_queries;
  if (own_.common.json) {
    Json search = part_json(part.info);
    search["first_query"] = 0;
    search["queries"] = queries;
    return print_result({{"command", name()},
                         {"ranks", own_.ranks.size()},
                         {"search", search},
                         {"neighbors", neighbors},
                         {"seconds", seconds},
                         {"plan", to_json(part.plan)},
                         {"stats", to_json(part.stats)},
                         {"output", command_.output},
                         {"parts", files_}});
  }
  cli::tell(
      own_.runtime, own_.common,
      fmt::format("{} neighbors of {} rows among {} by {}, found by {} {} in {} ({})", format_count(neighbors),
                  format_count(queries), format_count(part.info.rows), name_of(part.info.metric), own_.ranks.size(),
                  own_.ranks.size() == 1 ? "rank" : "ranks", format_duration(seconds), ran_as(part.plan)));
}

Plan RankOfSearch::plan() {
  const TableView* const asked = is_within() ? nullptr : &asked_;
  const RadiusOptions& within = search_.within;
  if (search_.kind == PartKind::radius) return plan_radius(*ctx_, own_.ranks, shard_, first_row_, asked, within);
  if (search_.kind == PartKind::count) return plan_count(*ctx_, own_.ranks, shard_, first_row_, asked, within);
  return plan_knn(*ctx_, own_.ranks, shard_, first_row_, asked, search_.nearest);
}

NeighborPart RankOfSearch::find() {
  // Calls search(context, communicator, shard, first row, [queries,] options).
  const auto found = [&](const auto& search, const auto& options) {
    return is_within() ? search(*ctx_, own_.ranks, shard_, first_row_, options)
                       : search(*ctx_, own_.ranks, shard_, first_row_, asked_, options);
  };
  const auto lists = [](const auto& ctx, auto& ranks, const auto&... more) { return radius_part(ctx, ranks, more...); };
  const auto counts = [](const auto& ctx, auto& ranks, const auto&... more) { return count_part(ctx, ranks, more...); };
  const auto nearest = [](const auto& ctx, auto& ranks, const auto&... more) { return knn_part(ctx, ranks, more...); };
  if (search_.kind == PartKind::radius) return found(lists, search_.within);
  if (search_.kind == PartKind::count) return found(counts, search_.within);
  return found(nearest, search_.nearest);
}

/// With the memory that some rank needs.
Plan RankOfSearch::agreed(Plan plan) {
  std::array<std::int64_t, 1> most = {static_cast<std::int64_t>(plan.memory)};
  own_.ranks.all_reduce_max(most);
  plan.memory = static_cast<std::uint64_t>(most[0]);
  return plan;
}

void RankOfSearch::deliver(const NeighborPart& part, std::chrono::steady_clock::time_point start) {
  write(part);
  std::array<std::int64_t, 1> neighbors = {std::ssize(part.ids)};
  for (const std::int64_t count : part.counts) neighbors[0] += count;
  own_.ranks.all_reduce_sum(neighbors);
  tell(part, neighbors[0], start);
}

/// With --resume: a search for the rank's share of the queries in the whole table.
Plan RankOfSearch::plan_in_whole(const Share& mine) {
  const TableView& rows = tables_.rows.view;
  const TableView& asked = is_within() ? rows : tables_.asked.view;
  const TableView share = asked.slice(mine.begin, std::max(mine.end, mine.begin + 1));
  const PartOptions place{0, mine.begin, is_within(), rows.rows(), 0};
  if (search_.kind == PartKind::radius) return plan_radius_part_file(*ctx_, rows, share, search_.within, place);
  if (search_.kind == PartKind::count) return plan_radius_part(*ctx_, rows, share, search_.within, place);
  (void)plan_knn(*ctx_, rows, is_within() ? nullptr : &asked, search_.nearest);  // refuses what the whole would
  return plan_knn_part(*ctx_, rows, share, search_.nearest, place);
}

WholeSearch RankOfSearch::search_of_blocks(const Index& index, const Plan& plan) {
  WholeSearch whole;
  whole.kind = search_.kind;
  whole.filter = whole_filter_;
  whole.plan = plan;
  const std::int64_t rows = is_within() ? tables_.rows.view.rows() : tables_.asked.view.rows();
  whole.planned_rows = (rows + own_.ranks.size() - 1) / own_.ranks.size();
  if (search_.kind == PartKind::knn) {
    whole.facts = {{"k", search_.nearest.k, "number of neighbors"}};
  } else {
    whole.facts = {{"radius", format_number(search_.within.radius), "--radius"}};
  }
  search_.nearest.method = search_.within.method = plan.method;  // not what is best for a block alone
  whole.search = [this, &index](const TableView& around, const PartOptions& place, const std::filesystem::path& path) {
    if (search_.kind == PartKind::radius) {
      radius_part_file(*ctx_, index, around, search_.within, place, path);
    } else {
      write_part(*ctx_, path,
                 search_.kind == PartKind::knn ? knn_part(*ctx_, index, around, search_.nearest, place)
                                               : count_part(*ctx_, index, around, search_.within, place));
    }
  };
  return whole;
}

/// Each rank reads the whole table, and searches in it for blocks of the queries.
void RankOfSearch::run_resumed(std::chrono::steady_clock::time_point start) {
  const Share mine = share(is_within() ? tables_.rows.view.rows() : tables_.asked.view.rows());
  Plan plan;
  together([&] { plan = plan_in_whole(mine); });
  plan = agreed(std::move(plan));
  if (command_.common.explain) {
    plan.memory = inputs_.total(plan.memory);
    if (own_.ranks.rank() == 0) print_plan(own_.common, plan);
    return;
  }
  std::optional<Index> index;
  together([&] {
    inputs_.require(name(), plan.memory);
    make_folder(command_.output);
    require_other_folder(command_.output, command_.resume.folder);
    index.emplace(*ctx_, tables_.rows.view);
  });
  const WholeSearch whole = search_of_blocks(*index, plan);
  SearchBlocks blocks(own_.runtime, command_, tables_, whole, &own_.ranks);
  blocks.run();
  index.reset();
  NeighborPart part;
  together([&] { part = blocks.part(*ctx_, mine.begin, mine.end); });
  deliver(part, start);
  blocks.finish();
}

void RankOfSearch::run(std::chrono::steady_clock::time_point start) {
  together([&] { read(); });
  agree();
  if (command_.resume.any()) return run_resumed(start);
  Plan plan = agreed(this->plan());
  if (command_.common.explain) {
    plan.memory = inputs_.total(plan.memory);
    if (own_.ranks.rank() == 0) print_plan(own_.common, plan);
    return;
  }
  together([&] {
    inputs_.require(name(), plan.memory);
    make_folder(command_.output);
  });
  deliver(find(), start);
}

}  // namespace

void write_parts_of_ranks(const NeighborsCommand& command, const SearchOfRanks& search,
                          std::chrono::steady_clock::time_point start) {
  run_on_ranks(command.common, [&](const RankRuntime& own) { RankOfSearch(command, search, own).run(start); });
}

}  // namespace vicinal::cli

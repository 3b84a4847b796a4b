// `vicinal radius`: every row within a radius, or how many there are.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/common_options.hpp"
#include "base/input.hpp"
#include "base/output.hpp"
#include "base/planned_inputs.hpp"
#include "commands.hpp"
#include "io/graph_writer.hpp"
#include "nearest/blocks.hpp"
#include "nearest/changed_lists.hpp"
#include "nearest/manifest.hpp"
#include "nearest/neighbors_output.hpp"
#include "nearest/parts_of_ranks.hpp"
#include "nearest/shard.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/radius_batches.hpp"

namespace vicinal::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RadiusCommand : NeighborsCommand {
  double radius = 0;
  bool count_only = false;

  void run() const;
  void run_part(const Runtime& runtime, Clock::time_point start) const;
  [[nodiscard]] Plan plan(const Context& ctx, const TableView& rows, const TableView& asked,
                          const RadiusOptions& options) const;
  void run_count(const Runtime& runtime, const Context& ctx, const NeighborTables& tables, const RadiusOptions& options,
                 Clock::time_point start) const;
  void tell_counts(const Runtime& runtime, const NeighborTables& tables, const NeighborCounts& found,
                   Clock::time_point start) const;
  [[nodiscard]] WholeSearch search_of_blocks(const Context& ctx, const NeighborTables& tables, const Index& index,
                                             const RadiusOptions& options, RadiusOptions& of_block) const;
};

Plan RadiusCommand::plan(const Context& ctx, const TableView& rows, const TableView& asked,
                         const RadiusOptions& options) const {
  const TableView* const around = queries.empty() ? nullptr : &asked;
  return count_only ? plan_radius(ctx, rows, around, options) : plan_radius_batches(ctx, rows, around, options);
}

/// --resume: the search, whose blocks are run by the caller. Borrows all that it is given.
WholeSearch RadiusCommand::search_of_blocks(const Context& ctx, const NeighborTables& tables, const Index& index,
                                            const RadiusOptions& options, RadiusOptions& of_block) const {
  WholeSearch whole;
  whole.kind = count_only ? PartKind::count : PartKind::radius;
  whole.facts = {{"radius", format_number(radius), "--radius"}};
  whole.filter = options.filter;
  whole.plan = plan(ctx, tables.rows.view, tables.asked.view, options);
  of_block = options;
  of_block.method = whole.plan.method;  // not what is best for a block alone
  whole.search = [&](const TableView& around, const PartOptions& place, const std::filesystem::path& path) {
    if (count_only) {
      write_part(ctx, path, count_part(ctx, index, around, of_block, place));
    } else {
      radius_part_file(ctx, index, around, of_block, place, path);
    }
  };
  return whole;
}

void RadiusCommand::run_count(const Runtime& runtime, const Context& ctx, const NeighborTables& tables,
                              const RadiusOptions& options, Clock::time_point start) const {
  const Table& rows = tables.rows;
  const Table& asked = tables.asked;
  const Index index(ctx, rows.view, {.packed = Packing::never});
  std::optional<SearchBlocks> blocks;
  WholeSearch whole;
  RadiusOptions of_block;
  if (resume.any()) {
    whole = search_of_blocks(ctx, tables, index, options, of_block);
    blocks.emplace(runtime, *this, tables, whole).run();
  }
  const NeighborCounts found = blocks            ? blocks->counts(ctx)
                               : queries.empty() ? count(ctx, index, options)
                                                 : count(ctx, index, asked.view, options);
  runtime.ctx.check_cancelled();
  OutputFiles together;
  if (!output.empty()) write_counts(output, found.counts, names(tables).asked);
  together.commit();
  runtime.progress->clear();
  tell_counts(runtime, tables, found, start);
  if (blocks) blocks->finish();
}

void RadiusCommand::tell_counts(const Runtime& runtime, const NeighborTables& tables, const NeighborCounts& found,
                                Clock::time_point start) const {
  const auto m = static_cast<std::int64_t>(found.counts.size());
  const RowNames called = names(tables).asked;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::int64_t total = std::accumulate(found.counts.begin(), found.counts.end(), std::int64_t{0});
  const auto [least, most] = std::minmax_element(found.counts.begin(), found.counts.end());
  if (common.json) {
    Json json = {{"command", "radius"},
                 {"rows", m},
                 {"table_rows", tables.rows.view.rows()},
                 {"dropped_rows", tables.dropped},
                 {"radius", radius},
                 {"neighbors", total},
                 {"fewest", *least},
                 {"most", *most},
                 {"metric", search.metric},
                 {"seconds", seconds},
                 {"plan", to_json(found.plan)},
                 {"stats", to_json(found.stats)}};
    json["output"] = output.empty() ? Json(nullptr) : Json(output);
    const auto shown = std::min<std::ptrdiff_t>(m, 10);
    json["first_counts"] = std::vector<std::int64_t>(found.counts.begin(), found.counts.begin() + shown);
    return print_result(std::move(json));
  }
  if (output.empty()) {
    std::vector<std::vector<std::string>> lines = {{called.header(), "count"}};
    for (std::int64_t i = 0; i < std::min<std::int64_t>(m, 10); ++i) {
      lines.push_back({called.text(i), fmt::format("{}", found.counts[static_cast<std::size_t>(i)])});
    }
    print_text(format_table(lines));
  }
  tell(runtime, common,
       fmt::format("{} neighbors of {} rows within {} by {}, {} to {} a row, in {}", format_count(total),
                   format_count(m), radius, search.metric, *least, *most, format_duration(seconds)));
}

void RadiusCommand::run_part(const Runtime& runtime, Clock::time_point start) const {
  const Shard shard(*this);
  shard.run(
      runtime, start, "radius",
      [&](const Context& ctx, const ShardSearch& part) {
        const RadiusOptions options = radius_options(search, radius, part.filter);
        return count_only ? plan_radius_part(ctx, part.rows, part.queries, options, part.place)
                          : plan_radius_part_file(ctx, part.rows, part.queries, options, part.place);
      },
      [&](const Context& ctx, const ShardSearch& part) {
        const RadiusOptions options = radius_options(search, radius, part.filter);
        WrittenPart found;
        if (count_only) {
          found.part = count_part(ctx, part.rows, part.queries, options, part.place);
          found.neighbors = std::accumulate(found.part.counts.begin(), found.part.counts.end(), std::int64_t{0});
          write_part(runtime.ctx, output, found.part);
        } else {
          found.part = radius_part_file(ctx, part.rows, part.queries, options, part.place, output, &found.neighbors);
        }
        return found;
      });
}

void RadiusCommand::run() const {
  const auto start = Clock::now();
  if (is_folder_of_parts(output)) {
    SearchOfRanks of_ranks;
    of_ranks.kind = count_only ? PartKind::count : PartKind::radius;
    of_ranks.within = radius_options(search, radius, {});
    return write_parts_of_ranks(*this, of_ranks, start);
  }
  const Runtime runtime = make_runtime(common);
  resume.check();
  if (!row_range.empty()) return run_part(runtime, start);
  check_output("--report", report, {".html", ".htm"});
  if (count_only && !report.empty()) {
    throw Error(ErrorCode::invalid_argument, "--report: shows neighbors, which --count does not keep");
  }
  if (count_only && queries.empty()) missing.refuse_drop("--count counts for every row of TABLE");
  if (count_only && !graph_output.given().empty()) {
    throw Error(ErrorCode::invalid_argument, graph_output.given() + ": changes lists, which --count does not keep");
  }
  graph_output.check(queries, search.metric, output);
  if (count_only) {
    check_output("-o", output, {".npy", ".csv"});
  } else {
    check_output("-o", output, {".npz", ".csv"});
  }
  const ReadOptions reading = this->reading();
  PlannedInputs inputs(runtime, common);
  const TableView shape = inputs.add_table(table, reading);
  const TableView shape_asked = queries.empty() ? TableView{} : inputs.add_table(queries, reading);
  inputs.add(page_bytes(shape, shape_asked) + missing.fill_bytes(runtime.ctx, shape, shape_asked));
  // Within a radius lists are symmetric, unless a filter makes them differ.
  const bool searches_all = graph_output.symmetric != "no" && !search.filter.empty();
  if (searches_all || missing.drops()) inputs.add(changed_bytes(shape.rows()));
  if (graph_output.include_self) inputs.add(changed_bytes(shape.rows()));
  if (resume.any()) inputs.add(kBytesOfBlocks);
  const Context ctx = inputs.fit("radius", [&](const Context& rest) {
    return plan(rest, shape, shape_asked, radius_options(search, radius, {})).memory;
  });
  const NeighborTables tables = read(runtime);
  const Table& rows = tables.rows;
  const Table& asked = tables.asked;
  const auto filter = read_filter(runtime.ctx, search.filter, rows.view.rows());
  RadiusOptions options = radius_options(search, radius, filter);
  if (searches_all) options.filter = {};
  if (common.explain) {
    Plan shown = plan(ctx, rows.view, asked.view, options);
    shown.memory = inputs.total(shown.memory);
    return print_plan(common, shown);
  }
  if (count_only) return run_count(runtime, ctx, tables, options, start);
  std::optional<Index> index;
  std::optional<SearchBlocks> blocks;
  WholeSearch whole;
  RadiusOptions of_block;
  // Lists that are too long are refused with what the whole command needs.
  const auto naming_need = [&](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::over_memory) throw;
      inputs.require("radius", plan(ctx.with_memory_limit(1), rows.view, asked.view, options).memory);
      throw;
    }
  };
  if (resume.any()) {
    whole = search_of_blocks(ctx, tables, index.emplace(ctx, rows.view), options, of_block);
    naming_need([&] { blocks.emplace(runtime, *this, tables, whole).run(); });
  }
  OutputFiles together;
  std::optional<io::GraphWriter> writer;
  if (!output.empty()) writer.emplace(runtime.ctx, output, write_options(tables));
  report::NeighborProfile profile = profile_of(rows, asked);
  report::NeighborProfile written;
  const auto deliver_lists = [&](std::int64_t first, const NeighborGraph& lists) {
    profile.add(lists);
    if (!graph_output.include_self && writer) writer->add(first, lists);
    if (!graph_output.include_self) return;
    pass_on_changed(first, lists, with_row_itself(), [&](std::int64_t at, const NeighborGraph& with_itself) {
      written.add(with_itself);
      if (writer) writer->add(at, with_itself);
    });
  };
  ChangeList change;
  if (!tables.kept.empty()) change = renumbered(tables.kept);
  if (searches_all) change = among_filtered(filter, graph_output.symmetric == "mutual");
  const auto take = [&](std::int64_t first, const NeighborGraph& found) {
    change ? pass_on_changed(first, found, change, deliver_lists) : deliver_lists(first, found);
  };
  naming_need([&] {
    profile.stats = (blocks            ? blocks->lists(ctx, take)
                     : queries.empty() ? radius_batches(ctx, rows.view, options, take)
                                       : radius_batches(ctx, rows.view, asked.view, options, take))
                        .stats;
  });
  if (blocks) profile.plan = whole.plan;
  if (writer) writer->commit();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  written.plan = profile.plan;
  written.stats = profile.stats;
  const report::NeighborProfile& shown = graph_output.include_self ? written : profile;
  deliver(runtime, {rows, asked, profile, shown, row_numbers(tables), names(tables), tables.dropped, seconds, radius},
          together);
  if (blocks) blocks->finish();
}

}  // namespace

Command add_radius(const Parser& root) {
  auto command = std::make_shared<RadiusCommand>();
  const Parser app = root.add_subcommand("radius", "Find every row within a radius, or count them");
  app.add_option("TABLE", command->table, "Rows to search: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  app.add_option("QUERIES", command->queries,
                 "Rows to search around; if omitted, the rows of TABLE, each excluding itself")
      .type_name("FILE");
  app.add_option("-r,--radius", command->radius, "Maximum distance, inclusive")
      .type_name("R")
      .required()
      .group("Search");
  app.add_flag("--count", command->count_only, "Count the neighbors instead of listing them").group("Search");
  app.add_option("-o,--output", command->output,
                 "Output file: .npz (ids, distances, offsets) or .csv; with --count .npy or .csv; or DIR/ for parts, "
                 "which the processes of mpirun find together, and `vicinal merge` reads")
      .type_name("FILE");
  command->add_to(app);
  app.add_examples({"vicinal radius train.npy -r 1.5 -o near.npz", "vicinal radius train.npy test.npy -r 2 --count",
                    "vicinal radius train.npy -r 1 --count -o counts.csv",
                    "vicinal radius train.npy -r 1 --report report.html"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli

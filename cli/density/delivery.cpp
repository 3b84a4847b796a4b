// See delivery.hpp.
#include "density/delivery.hpp"

#include <fmt/core.h>

#include <utility>

#include "base/output_files.hpp"
#include "kmeans/agreement.hpp"
#include "vicinal/validity.hpp"

namespace vicinal::cli {
namespace {

Json validity_json(const Validity& found) {
  return {{"index", found.index ? Json(*found.index) : Json(nullptr)}, {"clusters", found.clusters}};
}

std::string validity_text(const Validity& found) {
  if (!found.index) return "validity  none, as fewer than two clusters have two rows\n";
  return fmt::format("validity  {:.4f}\n", *found.index);
}

Json path_or_null(const std::string& path) {
  return path.empty() ? Json(nullptr) : Json(path);
}

}  // namespace

std::optional<PlannedRows> read_planned(const DensityCommand& command, const Runtime& runtime,
                                        const DensityPlan& plan) {
  command.check();
  PlannedInputs inputs(runtime, command.common);
  const TableView shape = command.add_inputs(inputs);
  if (plan.add) plan.add(inputs, shape);
  const auto whole = [&](const Context& left, const TableView& rows) {
    Plan all = plan.plan(left, rows);
    all.memory += command.bytes_after(rows);
    if (command.rates_validity) all.memory += validity_bytes(left, rows);
    return all;
  };
  const Context rest = inputs.fit(plan.job, [&](const Context& left) { return whole(left, shape).memory; });
  DensityRows rows = command.read_prepared(runtime.ctx);
  if (!command.common.explain) return PlannedRows{rest, std::move(rows)};
  Plan told = whole(rest, rows.table.view);
  told.memory = inputs.total(told.memory);
  print_plan(command.common, told);
  return std::nullopt;
}

void deliver(const DensityCommand& command, const Runtime& runtime, const DensityRows& rows, DensityOutcome outcome,
             std::chrono::steady_clock::time_point start) {
  const Context& ctx = runtime.ctx;
  const std::vector<std::int64_t>& labels = *outcome.labels;
  const std::vector<std::int64_t>& sizes = *outcome.sizes;
  const auto scores = command.agreement_of(ctx, rows, labels, std::ssize(sizes));
  std::optional<Validity> rating;
  if (command.rates_validity) {
    rating =
        validity(ctx, rows.table.view, labels, {.metric = metric_from(command.search.metric), .p = command.search.p});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report::DensityReport& page = outcome.page;
  page.file = command.table;
  page.table = &rows.table.view;
  page.labels = labels;
  page.sizes = sizes;
  page.noise = outcome.noise;
  page.plan = outcome.plan;
  page.scores = scores;
  page.seconds = seconds;
  const std::string text = command.report.empty() ? std::string() : render(ctx, page);
  ctx.check_cancelled();
  OutputFiles together;
  if (outcome.save) outcome.save();
  write_clusters(ctx, command.output, rows, labels, outcome.values);
  if (!command.report.empty()) write_text(command.report, text);
  together.commit();
  runtime.progress->clear();
  if (command.common.json) {
    Json json = {{"command", outcome.command},
                 {"rows", labels.size()},
                 {"clusters", sizes.size()},
                 {"sizes", sizes},
                 {"noise", outcome.noise},
                 {"dropped_rows", rows.dropped()},
                 {"metric", command.search.metric},
                 {"scores", scores ? cli::to_json(*scores) : Json(nullptr)},
                 {"validity", rating ? validity_json(*rating) : Json(nullptr)},
                 {"output", path_or_null(command.output)},
                 {"report", path_or_null(command.report)}};
    json.update(outcome.told);
    json["seconds"] = seconds;
    json["plan"] = cli::to_json(*outcome.plan);
    return print_result(std::move(json));
  }
  if (command.output.empty()) {
    const std::vector<double> persistences(page.persistences.begin(), page.persistences.end());
    print_text(clusters_text(sizes, outcome.noise, page.tree != nullptr ? "persistence" : "", persistences));
  }
  if (scores) print_text(agreement_text(*scores));
  if (rating) print_text(validity_text(*rating));
  tell(runtime, command.common,
       fmt::format("{} rows in {} clusters, {}{} noise, {} ({})", format_count(std::ssize(labels)), sizes.size(),
                   outcome.counts.empty() ? "" : outcome.counts + ", ", format_count(outcome.noise),
                   format_duration(seconds), ran_as(*outcome.plan)));
}

}  // namespace vicinal::cli

// `vicinal optics`: rows in the order of their density, and the clusters that are read from it.
#include "vicinal/optics.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/output.hpp"
#include "commands.hpp"
#include "density/delivery.hpp"

namespace vicinal::cli {
namespace {

struct OpticsCommand : DensityCommand {
  OpticsOptions asked;
  OpticsXiOptions steep;
  std::string clusters = "xi";
  double eps = std::numeric_limits<double>::quiet_NaN();  // not given
  bool keeps_ends = false;

  void run() const;

 private:
  [[nodiscard]] bool has_eps() const { return !std::isnan(eps); }
  void check_clusters() const;
  [[nodiscard]] OpticsOptions options() const;
  [[nodiscard]] OpticsClusters clusters_of(const Context& ctx, const Optics& order) const;
  [[nodiscard]] std::uint64_t bytes_of_clusters(const TableView& rows) const;
};

void OpticsCommand::check_clusters() const {
  if (clusters == "dbscan" && !has_eps()) {
    throw Error(ErrorCode::invalid_argument, "--clusters: dbscan needs --eps");
  }
  if (clusters == "xi" && has_eps()) {
    throw Error(ErrorCode::invalid_argument,
                "--eps: is only for --clusters dbscan; leave it out, or add --clusters dbscan");
  }
}

OpticsOptions OpticsCommand::options() const {
  OpticsOptions options = asked;
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

OpticsClusters OpticsCommand::clusters_of(const Context& ctx, const Optics& order) const {
  if (clusters == "dbscan") return optics_dbscan(ctx, order, eps);
  OpticsXiOptions options = steep;
  options.predecessor_correction = !keeps_ends;
  return optics_xi(ctx, order, options);
}

/// Of reading clusters from the order, and of longer lines than other commands have.
std::uint64_t OpticsCommand::bytes_of_clusters(const TableView& rows) const {
  constexpr std::uint64_t kMoreOfALine = std::uint64_t{2} * 80;
  return static_cast<std::uint64_t>(rows.rows()) * (160 + (is_csv_output(output) ? kMoreOfALine : 0));
}

void OpticsCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  const Runtime runtime = make_runtime(common, Computes::on_host);
  check_clusters();
  const auto planned = read_planned(*this, runtime, {"optics", [&](const Context& left, const TableView& rows) {
                                                       Plan plan = plan_optics(left, rows, options());
                                                       plan.memory += bytes_of_clusters(rows);
                                                       return plan;
                                                     }});
  if (!planned) return;
  const Optics order = optics(planned->rest, planned->rows.table.view, options());
  const OpticsClusters found = clusters_of(runtime.ctx, order);
  std::vector<std::int64_t> places(order.ordering.size());
  for (std::size_t place = 0; place < places.size(); ++place) {
    places[static_cast<std::size_t>(order.ordering[place])] = static_cast<std::int64_t>(place);
  }
  DensityOutcome outcome = {
      .command = "optics",
      .labels = &found.labels,
      .sizes = &found.sizes,
      .noise = found.noise,
      .plan = &order.plan,
      .values = {{.name = "place", .array = "", .integers = places},
                 {.name = "", .array = "ordering", .integers = order.ordering},
                 {.name = "reachability", .array = "reachability", .numbers = order.reachability},
                 {.name = "core_distance", .array = "core_distances", .numbers = order.core_distances},
                 {.name = "predecessor", .array = "predecessors", .rows = order.predecessors}}};
  outcome.page.how = {{"Min samples", fmt::format("{}", asked.min_samples)}, {"Metric", search.metric}};
  if (!std::isinf(asked.max_eps)) outcome.page.how.emplace_back("Max eps", format_number(asked.max_eps));
  outcome.page.how.emplace_back("Clusters", has_eps() ? fmt::format("dbscan, eps {}", format_number(eps))
                                                      : fmt::format("xi {}", format_number(steep.xi)));
  outcome.page.order = &order;
  Json hierarchy = Json::array();
  for (std::size_t i = 0; i < found.starts.size(); ++i) hierarchy.push_back({found.starts[i], found.ends[i]});
  outcome.told = {{"hierarchy", hierarchy},
                  {"min_samples", asked.min_samples},
                  {"max_eps", std::isinf(asked.max_eps) ? Json(nullptr) : Json(asked.max_eps)},
                  {"extraction", clusters},
                  {"xi", has_eps() ? Json(nullptr) : Json(steep.xi)},
                  {"eps", has_eps() ? Json(eps) : Json(nullptr)},
                  {"order_seconds", order.order_seconds},
                  {"stats", cli::to_json(order.stats)}};
  deliver(*this, runtime, planned->rows, std::move(outcome), start);
}

}  // namespace

Command add_optics(const Parser& root) {
  auto command = std::make_shared<OpticsCommand>();
  OpticsOptions& asked = command->asked;
  const Parser app = root.add_subcommand("optics", "Order rows by density, and read clusters from the order");
  app.add_option("TABLE", command->table, "Rows to cluster: .npy, .npz, .csv, .tsv or idx; plain, gzip or xz")
      .type_name("FILE")
      .required();
  const std::string group = "Clustering";
  app.add_option("--min-samples", asked.min_samples,
                 "Core distance of a row: distance to its N-th nearest row, itself included")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_option("--max-eps", asked.max_eps, "Maximum distance of two neighbors [no limit]")
      .type_name("X")
      .group(group);
  app.add_choice(
         "--clusters", command->clusters, {"xi", "dbscan"},
         "Clusters to read; xi: valleys of the reachability between steep sides; dbscan: those of dbscan with --eps")
      .group(group);
  app.add_option("--xi", command->steep.xi,
                 "Minimum share by which a steep side falls or rises from one row to the next")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_option("--eps", command->eps, "Maximum distance of two neighbors for --clusters dbscan, at most --max-eps")
      .type_name("X")
      .group(group);
  app.add_option("--min-cluster-size", command->steep.min_cluster_size,
                 "Minimum number of rows of a cluster by xi, at least 2; 0: as --min-samples")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_flag("--no-predecessor-correction", command->keeps_ends,
               "Keep rows at the end of a cluster by xi that are reached from other clusters")
      .group(group);
  app.add_option("-o,--output", command->output,
                 "Output file: .csv (row,label,place,reachability,core_distance,predecessor; label -1 is noise), .npz "
                 "(labels, ordering, reachability, core_distances, predecessors) or .npy (labels)")
      .type_name("FILE");
  command->add_to(app, true);
  app.add_examples({"vicinal optics train.csv --drop class --min-samples 10 -o order.csv",
                    "vicinal optics train.npy --xi 0.1 --report report.html",
                    "vicinal optics train.npy --max-eps 2 --clusters dbscan --eps 1 -o labels.npy"});
  return command_naming_files(app, command);
}

}  // namespace vicinal::cli

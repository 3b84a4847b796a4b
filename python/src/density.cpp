// minimum_spanning_tree, dbscan, optics, and the clusters that are read from its order.
#include <string>
#include <type_traits>
#include <utility>

#include "answer.hpp"
#include "density_rows.hpp"
#include "functions.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::object tree_answer(const Call& call, const std::shared_ptr<const SpanningTree>& tree) {
  const SpanningTreeOptions& options = tree->options;
  return Answer(call, tree)
      .value("rows", tree->rows)
      .array("a", tree->a)
      .array("b", tree->b)
      .array("lengths", tree->lengths)
      .array("core_distances", tree->core_distances)
      .value("min_samples", options.min_samples)
      .value("count_self", options.count_self)
      .value("alpha", options.alpha)
      .text("metric", name_of(options.metric))
      .value("p", options.p)
      .plan(tree->plan)
      .stats(tree->stats)
      .value("tree_seconds", tree->tree_seconds)
      .done();
}

nb::object spanning_tree_call(nb::handle table, nb::dict keywords) {
  Call call("minimum_spanning_tree", std::move(keywords));
  const auto options = call.options(spanning_tree_fields());
  call.refuse_others();
  const auto work = [&](const Context& ctx, const auto& rows) { return minimum_spanning_tree(ctx, rows, options); };
  return tree_answer(call, found_in<SpanningTree>(call, table, work, Computes::on_device));
}

nb::object spanning_tree_of(nb::handle a, nb::handle b, nb::handle lengths, nb::handle core_distances,
                            nb::dict keywords) {
  Call call("SpanningTree.of", std::move(keywords));
  auto tree = std::make_shared<SpanningTree>();
  tree->options = call.options(spanning_tree_fields());
  call.refuse_others();
  copy_to(call, "a", a, tree->a);
  copy_to(call, "b", b, tree->b);
  copy_to(call, "lengths", lengths, tree->lengths);
  copy_to(call, "core_distances", core_distances, tree->core_distances);
  const std::size_t edges = tree->a.size();
  tree->rows = static_cast<std::int64_t>(edges) + 1;
  if (tree->b.size() != edges || tree->lengths.size() != edges || tree->core_distances.size() != edges + 1) {
    throw Error(ErrorCode::invalid_argument,
                "a: " + std::to_string(edges) + " edges; expected as many ends b and lengths, but there are " +
                    std::to_string(tree->b.size()) + " and " + std::to_string(tree->lengths.size()) +
                    ", and one core distance more, but there are " + std::to_string(tree->core_distances.size()));
  }
  return tree_answer(call, tree);
}

nb::object dbscan_call(nb::handle table, nb::dict keywords) {
  Call call("dbscan", std::move(keywords));
  const auto options = call.options(dbscan_fields());
  call.refuse_others();
  const auto work = [&](const Context& ctx, const auto& rows) { return dbscan(ctx, rows, options); };
  const std::shared_ptr<const Dbscan> found = found_in<Dbscan>(call, table, work, Computes::on_device);
  return Answer(call, found)
      .array("labels", found->labels)
      .array("core", found->core)
      .value("clusters", found->clusters)
      .array("sizes", found->sizes)
      .value("core_rows", found->core_rows)
      .value("noise", found->noise)
      .plan(found->plan)
      .stats(found->stats)
      .value("prepare_seconds", found->prepare_seconds)
      .value("cluster_seconds", found->cluster_seconds)
      .done();
}

nb::object order_answer(const Call& call, const std::shared_ptr<const Optics>& order) {
  const OpticsOptions& options = order->options;
  return Answer(call, order)
      .array("ordering", order->ordering)
      .array("reachability", order->reachability)
      .array("core_distances", order->core_distances)
      .array("predecessors", order->predecessors)
      .value("min_samples", options.min_samples)
      .value("max_eps", options.max_eps)
      .text("metric", name_of(options.metric))
      .value("p", options.p)
      .plan(order->plan)
      .stats(order->stats)
      .value("order_seconds", order->order_seconds)
      .done();
}

nb::object optics_call(nb::handle table, nb::dict keywords) {
  Call call("optics", std::move(keywords));
  const auto options = call.options(optics_fields());
  call.refuse_others();
  return order_answer(call, found_in<Optics>(call, table, [&](const Context& ctx, const auto& rows) {
                        return optics(ctx, rows, options);
                      }));
}

nb::object optics_of(nb::handle ordering, nb::handle reachability, nb::handle core_distances, nb::handle predecessors,
                     nb::dict keywords) {
  Call call("Optics.of", std::move(keywords));
  auto order = std::make_shared<Optics>();
  order->options = call.options(optics_fields());
  call.refuse_others();
  copy_to(call, "ordering", ordering, order->ordering);
  copy_to(call, "reachability", reachability, order->reachability);
  copy_to(call, "core_distances", core_distances, order->core_distances);
  copy_to(call, "predecessors", predecessors, order->predecessors);
  return order_answer(call, order);
}

/// Clusters that `read` reads from an order.
template <class Read>
nb::object order_clusters(Call& call, nb::handle order, const Read& read) {
  const auto held = call.expect<Optics>("order", order, "a result of optics");
  call.on_host();
  auto found = std::make_shared<OpticsClusters>();
  call.run([&](const Context& ctx) { *found = read(ctx, *held); });
  return Answer(call, std::shared_ptr<const OpticsClusters>(found))
      .array("labels", found->labels)
      .value("clusters", found->clusters)
      .value("noise", found->noise)
      .array("sizes", found->sizes)
      .array("starts", found->starts)
      .array("ends", found->ends)
      .done();
}

nb::object optics_xi_call(nb::handle order, nb::dict keywords) {
  Call call("optics_xi", std::move(keywords));
  const auto options = call.options(optics_xi_fields());
  call.refuse_others();
  return order_clusters(call, order,
                        [&](const Context& ctx, const Optics& held) { return optics_xi(ctx, held, options); });
}

nb::object optics_dbscan_call(nb::handle order, nb::handle eps, nb::dict keywords) {
  Call call("optics_dbscan", std::move(keywords));
  call.refuse_others();
  double distance = 0;
  Setting{"eps", eps, call}.read(distance);
  return order_clusters(call, order,
                        [&](const Context& ctx, const Optics& held) { return optics_dbscan(ctx, held, distance); });
}

nb::object validity_call(nb::handle table, nb::handle labels, nb::dict keywords) {
  Call call("validity", std::move(keywords));
  const auto options = call.options(validity_fields());
  call.refuse_others();
  const auto of_rows = call.integers("labels", labels);
  const std::shared_ptr<const Validity> found =
      found_in<Validity>(call, table, [&](const Context& ctx, const auto& rows) {
        if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, Index>) {
          return validity(ctx, rows.table(), of_rows, options);
        } else {
          return validity(ctx, rows, of_rows, options);
        }
      });
  return Answer(call, found)
      .value("index", found->index ? nb::cast(*found->index) : nb::object(nb::none()))
      .array("clusters", found->clusters)
      .array("sizes", found->sizes)
      .array("sparseness", found->sparseness)
      .array("separations", found->separations)
      .done();
}

}  // namespace

void bind_density(nb::module_& module) {
  module.def("validity", &validity_call, any("table"), any("labels"), nb::arg("keywords"));
  module.def("spanning_tree", &spanning_tree_call, any("table"), nb::arg("keywords"));
  module.def("spanning_tree_of", &spanning_tree_of, any("a"), any("b"), any("lengths"), any("core_distances"),
             nb::arg("keywords"));
  module.def("dbscan", &dbscan_call, any("table"), nb::arg("keywords"));
  module.def("optics", &optics_call, any("table"), nb::arg("keywords"));
  module.def("optics_of", &optics_of, any("ordering"), any("reachability"), any("core_distances"), any("predecessors"),
             nb::arg("keywords"));
  module.def("optics_xi", &optics_xi_call, any("order"), nb::arg("keywords"));
  module.def("optics_dbscan", &optics_dbscan_call, any("order"), any("eps"), nb::arg("keywords"));
}

}  // namespace vicinal::python

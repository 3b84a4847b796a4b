// hdbscan, and models of an index and its clusters.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "answer.hpp"
#include "density_rows.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "models.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Every array of a clustering, as Python names it; those of the condensed tree begin with "tree_".
template <class Found, class Visit>
void visit_arrays(Found& found, const Visit& visit) {
  visit("labels", found.labels);
  visit("probabilities", found.probabilities);
  visit("outlier_scores", found.outlier_scores);
  visit("sizes", found.sizes);
  visit("persistences", found.persistences);
  visit("exemplar_offsets", found.exemplar_offsets);
  visit("exemplars", found.exemplars);
  visit("core_distances", found.core_distances);
  visit("tree_parents", found.tree.parents);
  visit("tree_births", found.tree.births);
  visit("tree_sizes", found.tree.sizes);
  visit("tree_stabilities", found.tree.stabilities);
  visit("tree_labels", found.tree.labels);
  visit("tree_row_clusters", found.tree.row_clusters);
  visit("tree_row_distances", found.tree.row_distances);
}

nb::object hdbscan_answer(const Call& call, const std::shared_ptr<const Hdbscan>& found) {
  Answer answer(call, found);
  visit_arrays(*found, [&](const char* name, const auto& values) { answer.array(name, values); });
  return answer.value("clusters", found->clusters)
      .value("noise", found->noise)
      .plan(found->plan)
      .stats(found->stats)
      .value("tree_seconds", found->tree_seconds)
      .value("cluster_seconds", found->cluster_seconds)
      .done();
}

nb::object hdbscan_call(nb::handle table, nb::dict keywords) {
  Call call("hdbscan", std::move(keywords));
  const auto options = call.options(hdbscan_fields());
  call.refuse_others();
  if (const auto tree = call.native<SpanningTree>(table)) {
    call.on_host();
    auto found = std::make_shared<Hdbscan>();
    call.run([&](const Context& ctx) { *found = hdbscan(ctx, *tree, options); });
    return hdbscan_answer(call, found);
  }
  const auto work = [&](const Context& ctx, const auto& rows) { return hdbscan(ctx, rows, options); };
  return hdbscan_answer(call, found_in<Hdbscan>(call, table, work, Computes::on_device));
}

/// What a pickle keeps of a result: all but its plan and stats.
nb::dict hdbscan_state(nb::handle model) {
  Call call("hdbscan_state", {});
  const auto found = call.expect<Hdbscan>("model", model, "a result of hdbscan");
  nb::dict state;
  state["options"] = dict_of(hdbscan_fields(), found->options);
  visit_arrays(*found, [&](const char* name, const auto& values) { state[name] = copy_of(values); });
  return state;
}

nb::object hdbscan_of(nb::dict state) {
  Call call("Hdbscan", {});
  auto found = std::make_shared<Hdbscan>();
  Call options("Hdbscan", nb::cast<nb::dict>(state["options"]));
  found->options = options.options(hdbscan_fields());
  visit_arrays(*found, [&](const char* name, auto& values) { copy_to(call, name, state[name], values); });
  found->clusters = static_cast<std::int64_t>(found->sizes.size());
  found->noise = std::count(found->labels.begin(), found->labels.end(), -1);
  return hdbscan_answer(call, found);
}

nb::object hdbscan_model_call(nb::handle index, nb::handle fitted, nb::dict keywords) {
  Call call("HdbscanModel", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "the Index that the result was made of");
  const auto found = call.expect<Hdbscan>("fitted", fitted, "a result of hdbscan");
  if (static_cast<std::int64_t>(found->labels.size()) != held->index.rows()) {
    throw Error(ErrorCode::invalid_argument, "fitted: clusters of " + std::to_string(found->labels.size()) +
                                                 " rows, but the index has " + std::to_string(held->index.rows()));
  }
  HdbscanModel model{.index = held->index, .fitted = *found};
  return hdbscan_model_answer(
      call, std::make_shared<const Held<HdbscanModel>>(Held<HdbscanModel>{std::move(model), held->storage}));
}

nb::object hdbscan_predict(nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("predict", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<Held<HdbscanModel>>("model", model, "an HdbscanModel");
  const ModelRows rows(call, held->model.preparation, "queries", queries);
  auto found = std::make_shared<HdbscanPrediction>();
  call.run(
      [&](const Context& ctx) { rows.visit([&](const auto& given) { *found = predict(ctx, held->model, given); }); });
  return Answer(call, std::shared_ptr<const HdbscanPrediction>(found))
      .array("labels", found->labels)
      .array("probabilities", found->probabilities)
      .array("rows", found->rows)
      .done();
}

nb::object memberships_array(Memberships&& found) {
  const std::int64_t rows = found.rows;
  const std::int64_t clusters = found.clusters;
  return array_of(std::move(found.values), {rows, clusters});
}

/// Of the rows that were clustered, of which there is a table or an index.
nb::object hdbscan_memberships(nb::handle table, nb::handle fitted, nb::dict keywords) {
  Call call("hdbscan", std::move(keywords));
  call.refuse_others();
  const auto clusters = call.expect<Hdbscan>("fitted", fitted, "a result of hdbscan");
  const auto found = found_in<Memberships>(call, table, [&](const Context& ctx, const auto& rows) {
    if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, Index>) {
      return memberships(ctx, rows, *clusters);
    } else {
      return memberships(ctx, Index(ctx, rows, {.packed = Packing::never}), *clusters);
    }
  });
  return memberships_array(std::move(*found));
}

/// Of the model's rows, where there are no queries.
nb::object hdbscan_model_memberships(nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("memberships", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<Held<HdbscanModel>>("model", model, "an HdbscanModel");
  const HdbscanModel& own = held->model;
  Memberships found;
  if (queries.is_none()) {
    call.run([&](const Context& ctx) { found = memberships(ctx, own.index, own.fitted); });
    return memberships_array(std::move(found));
  }
  const ModelRows rows(call, own.preparation, "queries", queries);
  call.run([&](const Context& ctx) { rows.visit([&](const auto& given) { found = memberships(ctx, own, given); }); });
  return memberships_array(std::move(found));
}

}  // namespace

nb::object hdbscan_model_answer(const Call& call, const std::shared_ptr<const Held<HdbscanModel>>& held) {
  const HdbscanModel& model = held->model;
  return Answer(call, held)
      .value("index", index_answer(call, std::make_shared<const HeldIndex>(HeldIndex{model.index, held->storage})))
      .value("fitted", hdbscan_answer(call, part_of(held, model.fitted)))
      .value("columns", columns_of(model.preparation))
      .done();
}

void bind_hdbscan(nb::module_& module) {
  module.def("hdbscan", &hdbscan_call, any("table"), nb::arg("keywords"));
  module.def("hdbscan_state", &hdbscan_state, any("model"));
  module.def("hdbscan_of", &hdbscan_of, nb::arg("state"));
  module.def("hdbscan_model", &hdbscan_model_call, any("index"), any("fitted"), nb::arg("keywords"));
  module.def("hdbscan_memberships", &hdbscan_memberships, any("table"), any("fitted"), nb::arg("keywords"));
  module.def("hdbscan_model_memberships", &hdbscan_model_memberships, any("model"), nb::arg("queries").none(),
             nb::arg("keywords"));
  module.def("hdbscan_predict", &hdbscan_predict, any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

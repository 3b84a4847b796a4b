// lof, novelty, and models of an index and its scores.
#include <nanobind/stl/vector.h>

#include <array>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "models.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

struct LofArray {
  const char* name;
  std::vector<double> Lof::*values;
};
constexpr std::array<LofArray, 4> kLofArrays = {{{"scores", &Lof::scores},
                                                 {"k_distances", &Lof::k_distances},
                                                 {"densities", &Lof::densities},
                                                 {"caps", &Lof::caps}}};

nb::object lof_answer(const Call& call, const std::shared_ptr<const Lof>& result) {
  return Answer(call, result)
      .array("scores", result->scores)
      .value("threshold", result->threshold)
      .value("outliers", result->outliers)
      .value("duplicates", result->copied)
      .array("k_distances", result->k_distances)
      .array("densities", result->densities)
      .plan(result->plan)
      .stats(result->stats)
      .value("score_seconds", result->score_seconds)
      .done();
}

nb::object lof_call(nb::handle table, nb::handle rows, nb::dict keywords) {
  Call call("lof", std::move(keywords));
  const auto options = call.options(lof_fields());
  call.refuse_others();
  auto result = std::make_shared<Lof>();
  if (const auto graph = call.native<NeighborGraph>(table)) {
    const auto compared = optional_table(call, "table", rows);
    call.run([&](const Context& ctx) {
      *result = compared ? lof(ctx, *graph, compared->view, options) : lof(ctx, *graph, options);
    });
  } else {
    if (!rows.is_none()) throw Error(ErrorCode::invalid_argument, "table: only a graph needs the table as well");
    const Searched searched(call, table);
    call.run([&](const Context& ctx) { searched.visit([&](const auto& in) { *result = lof(ctx, in, options); }); });
  }
  return lof_answer(call, result);
}
nb::object novelty_call(nb::handle index, nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("novelty", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "an Index");
  const auto fitted = call.expect<Lof>("model", model, "a result of lof with novelty=True");
  const Input query_table = call.table("queries", queries);
  std::vector<double> scores;
  call.run([&](const Context& ctx) { scores = novelty(ctx, held->index, *fitted, query_table.view); });
  const auto rows = static_cast<std::int64_t>(scores.size());
  return array_of(std::move(scores), {rows});
}

nb::object lof_model_call(nb::handle index, nb::handle fitted, nb::dict keywords) {
  Call call("LofModel", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "the Index that the result was made of");
  const auto scored = call.expect<Lof>("fitted", fitted, "a result of lof with novelty=True");
  LofModel model{.index = held->index, .fitted = *scored};
  if (scored->k_distances.empty() || static_cast<std::int64_t>(scored->scores.size()) != held->index.rows()) {
    throw Error(ErrorCode::invalid_argument, "fitted: expected a result of lof with novelty=True of the index' " +
                                                 std::to_string(held->index.rows()) + " rows");
  }
  return lof_model_answer(call,
                          std::make_shared<const Held<LofModel>>(Held<LofModel>{std::move(model), held->storage}));
}

nb::object model_novelty(nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("novelty", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<Held<LofModel>>("model", model, "a LofModel");
  const ModelRows rows(call, held->model.preparation, "queries", queries);
  std::vector<double> scores;
  call.run(
      [&](const Context& ctx) { rows.visit([&](const auto& given) { scores = novelty(ctx, held->model, given); }); });
  return array_of(std::move(scores), {rows.rows()});
}

/// What a pickle keeps of a result: all but its plan and stats.
nb::dict lof_state(nb::handle model) {
  Call call("lof_state", {});
  const auto scored = call.expect<Lof>("model", model, "a result of lof");
  nb::dict state;
  state["options"] = dict_of(lof_fields(), scored->options);
  for (const auto& field : kLofArrays) state[field.name] = copy_of((*scored).*field.values);
  state["threshold"] = scored->threshold;
  state["outliers"] = scored->outliers;
  state["duplicates"] = scored->copied;
  state["spread"] = scored->spread;
  return state;
}

nb::object lof_of(nb::dict state) {
  Call call("Lof", {});
  auto scored = std::make_shared<Lof>();
  Call options("Lof", nb::cast<nb::dict>(state["options"]));
  scored->options = options.options(lof_fields());
  for (const auto& field : kLofArrays) {
    const auto values = call.numbers(field.name, state[field.name]);
    ((*scored).*field.values).assign(values.begin(), values.end());
  }
  scored->threshold = nb::cast<double>(state["threshold"]);
  scored->outliers = nb::cast<std::int64_t>(state["outliers"]);
  scored->copied = nb::cast<std::int64_t>(state["duplicates"]);
  scored->spread = nb::cast<double>(state["spread"]);
  return lof_answer(call, scored);
}

}  // namespace

nb::object lof_model_answer(const Call& call, const std::shared_ptr<const Held<LofModel>>& held) {
  const LofModel& model = held->model;
  return Answer(call, held)
      .value("index", index_answer(call, std::make_shared<const HeldIndex>(HeldIndex{model.index, held->storage})))
      .value("fitted", lof_answer(call, part_of(held, model.fitted)))
      .value("columns", columns_of(model.preparation))
      .done();
}

void bind_outliers(nb::module_& module) {
  module.def("lof", &lof_call, any("table"), any("rows"), nb::arg("keywords"));
  module.def("lof_model", &lof_model_call, any("index"), any("fitted"), nb::arg("keywords"));
  module.def("model_novelty", &model_novelty, any("model"), any("queries"), nb::arg("keywords"));
  module.def("lof_state", &lof_state, any("model"));
  module.def("lof_of", &lof_of, nb::arg("state"));
  module.def("novelty", &novelty_call, any("index"), any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

// lof, novelty and models in files.
#include <limits>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

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

void save_lof(nb::handle model, nb::handle index, const std::string& path, nb::dict keywords) {
  Call call("save", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<Lof>("model", model, "a result of lof with novelty=True");
  const auto held = call.expect<HeldIndex>("index", index, "the Index that the model was made of");
  call.run([&](const Context& ctx) { LofModel{.index = held->index, .fitted = *fitted}.save(ctx, path); });
}

nb::object load_lof(const std::string& path, nb::dict keywords) {
  Call call("load", std::move(keywords));
  call.refuse_others();
  std::shared_ptr<const HeldIndex> held;
  std::shared_ptr<const Lof> fitted;
  call.run([&](const Context& ctx) {
    LofModel read = LofModel::load(ctx, path);
    refuse_preparation(read.preparation, path);
    held = std::make_shared<HeldIndex>(HeldIndex{read.index, nullptr});
    fitted = std::make_shared<Lof>(std::move(read.fitted));
  });
  return nb::make_tuple(index_answer(call, held), lof_answer(call, fitted));
}

}  // namespace

void bind_outliers(nb::module_& module) {
  module.def("lof", &lof_call, any("table"), any("rows"), nb::arg("keywords"));
  module.def("save_lof", &save_lof, any("model"), any("index"), nb::arg("path"), nb::arg("keywords"));
  module.def("load_lof", &load_lof, nb::arg("path"), nb::arg("keywords"));
  module.def("novelty", &novelty_call, any("index"), any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

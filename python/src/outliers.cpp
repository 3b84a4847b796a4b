// lof and novelty.
#include <limits>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

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
  return Answer(call, std::shared_ptr<const Lof>(result))
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

nb::object novelty_call(nb::handle index, nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("novelty", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "an Index");
  const auto fitted = call.expect<Lof>("model", model, "a result of lof with novelty=True");
  const Input asked = call.table("queries", queries);
  std::vector<double> scores;
  call.run([&](const Context& ctx) { scores = novelty(ctx, held->index, *fitted, asked.view); });
  const auto rows = static_cast<std::int64_t>(scores.size());
  return array_of(std::move(scores), {rows});
}

}  // namespace

void bind_outliers(nb::module_& module) {
  module.def("lof", &lof_call, any("table"), any("rows"), nb::arg("keywords"));
  module.def("novelty", &novelty_call, any("index"), any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

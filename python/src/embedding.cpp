// lle, the placing of other rows, and models of an index and its embedding.
#include <nanobind/stl/vector.h>

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

nb::list pieces_of(const Lle& fitted) {
  nb::list pieces;
  for (const LlePiece& piece : fitted.pieces) pieces.append(dict_of(lle_piece_fields(), piece));
  return pieces;
}

nb::object lle_answer(const Call& call, const std::shared_ptr<const Lle>& result) {
  const auto rows = static_cast<std::int64_t>(result->piece.size());
  return Answer(call, result)
      .array("embedding", result->embedding, {rows, result->options.dim})
      .array("piece", result->piece)
      .array("placed", result->placed)
      .value("pieces", pieces_of(*result))
      .text("warning", result->warning)
      .value("eigenvalue_sum", result->eigenvalue_sum)
      .value("largest_weight", result->largest_weight)
      .plan(result->plan)
      .stats(result->stats)
      .done();
}

nb::object lle_call(nb::handle table, nb::handle graph, nb::dict keywords) {
  Call call("lle", std::move(keywords));
  const auto options = call.options(lle_fields());
  call.refuse_others();
  const Input input = call.table("table", table);
  const auto known_graph =
      graph.is_none() ? nullptr
                      : call.expect<NeighborGraph>("graph", graph, "a NeighborGraph of the table within itself");
  auto result = std::make_shared<Lle>();
  call.run([&](const Context& ctx) {
    const Input rows = in_memory(ctx, input);
    *result = known_graph ? lle(ctx, rows.view, *known_graph, options) : lle(ctx, rows.view, options);
  });
  return lle_answer(call, result);
}
nb::object transform_rows(nb::handle index, nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("transform", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "an Index of the table that was embedded");
  const auto fitted = call.expect<Lle>("model", model, "a result of lle");
  const Input query_table = call.table("queries", queries);
  std::vector<double> coordinates;
  call.run([&](const Context& ctx) { coordinates = transform(ctx, held->index, *fitted, query_table.view); });
  return array_of(std::move(coordinates), {query_table.view.rows(), fitted->options.dim});
}

nb::object lle_model_call(nb::handle index, nb::handle fitted, nb::dict keywords) {
  Call call("LleModel", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "an Index of the table that was embedded");
  const auto embedded = call.expect<Lle>("fitted", fitted, "a result of lle");
  if (static_cast<std::int64_t>(embedded->piece.size()) != held->index.rows()) {
    throw Error(ErrorCode::invalid_argument, "fitted: an embedding of " + std::to_string(embedded->piece.size()) +
                                                 " rows, but the index has " + std::to_string(held->index.rows()));
  }
  LleModel model{.index = held->index, .fitted = *embedded};
  return lle_model_answer(call,
                          std::make_shared<const Held<LleModel>>(Held<LleModel>{std::move(model), held->storage}));
}

nb::object model_transform(nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("transform", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<Held<LleModel>>("model", model, "an LleModel");
  const ModelRows rows(call, held->model.preparation, "queries", queries);
  std::vector<double> coordinates;
  call.run([&](const Context& ctx) {
    rows.visit([&](const auto& given) { coordinates = transform(ctx, held->model, given); });
  });
  return array_of(std::move(coordinates), {rows.rows(), held->model.fitted.options.dim});
}

/// What a pickle keeps of an embedding: all but plan, stats and times.
nb::dict lle_state(nb::handle model) {
  Call call("lle_state", {});
  const auto fitted = call.expect<Lle>("model", model, "a result of lle");
  nb::dict state;
  state["options"] = dict_of(lle_fields(), fitted->options);
  state["pieces"] = pieces_of(*fitted);
  state["embedding"] = copy_of(fitted->embedding);
  state["piece"] = copy_of(fitted->piece);
  state["placed"] = copy_of(fitted->placed);
  state["warning"] = nb::str(fitted->warning.c_str());
  state["eigenvalue_sum"] = fitted->eigenvalue_sum;
  state["largest_weight"] = fitted->largest_weight;
  return state;
}

nb::object lle_of(nb::dict state) {
  Call call("Lle", {});
  auto fitted = std::make_shared<Lle>();
  const auto fields_of = [](nb::handle fields) { return Call("Lle", nb::cast<nb::dict>(fields)); };
  fitted->options = fields_of(state["options"]).options(lle_fields());
  for (const nb::handle piece : nb::cast<nb::list>(state["pieces"])) {
    fitted->pieces.push_back(fields_of(piece).options(lle_piece_fields()));
  }
  const auto copy = [](auto from, auto& to) { to.assign(from.begin(), from.end()); };
  copy(call.numbers("embedding", state["embedding"]), fitted->embedding);
  copy(call.integers("piece", state["piece"]), fitted->piece);
  copy(call.integers("placed", state["placed"]), fitted->placed);
  if (fitted->options.dim < 1 ||
      fitted->embedding.size() / static_cast<std::size_t>(fitted->options.dim) != fitted->piece.size()) {
    throw Error(ErrorCode::bad_data, "embedding: its numbers are not those of its rows");
  }
  fitted->warning = nb::cast<std::string>(state["warning"]);
  fitted->eigenvalue_sum = nb::cast<double>(state["eigenvalue_sum"]);
  fitted->largest_weight = nb::cast<double>(state["largest_weight"]);
  return lle_answer(call, fitted);
}

}  // namespace

nb::object lle_model_answer(const Call& call, const std::shared_ptr<const Held<LleModel>>& held) {
  const LleModel& model = held->model;
  return Answer(call, held)
      .value("index", index_answer(call, std::make_shared<const HeldIndex>(HeldIndex{model.index, held->storage})))
      .value("fitted", lle_answer(call, part_of(held, model.fitted)))
      .value("columns", columns_of(model.preparation))
      .done();
}

void bind_embedding(nb::module_& module) {
  module.def("lle", &lle_call, any("table"), any("graph"), nb::arg("keywords"));
  module.def("lle_model", &lle_model_call, any("index"), any("fitted"), nb::arg("keywords"));
  module.def("model_transform", &model_transform, any("model"), any("queries"), nb::arg("keywords"));
  module.def("lle_state", &lle_state, any("model"));
  module.def("lle_of", &lle_of, nb::arg("state"));
  module.def("lle_transform", &transform_rows, any("index"), any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

// lle, the placing of other rows, and models of an index and its embedding.
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::list pieces_of(const Lle& fitted) {
  nb::list pieces;
  for (const LlePiece& piece : fitted.pieces) {
    nb::dict fields;
    fields["rows"] = piece.rows;
    fields["placed"] = piece.placed;
    fields["component"] = piece.component;
    fields["closed_classes"] = piece.closed_classes;
    fields["solver"] = std::string(name_of(piece.solver)).c_str();
    const auto array = [](const std::vector<double>& values) {
      return array_of(std::vector<double>(values), {static_cast<std::int64_t>(values.size())});
    };
    fields["singular_values"] = array(piece.singular_values);
    fields["residuals"] = array(piece.residuals);
    fields["next_singular_value"] = piece.next_singular_value;
    fields["zeros"] = piece.zeros;
    fields["counted"] = piece.counted;
    fields["count"] = std::string(name_of(piece.count)).c_str();
    fields["iterations"] = piece.iterations;
    pieces.append(fields);
  }
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
    // What comes in blocks is copied: all rows must be in memory.
    std::optional<Index> copy;
    if (input.view.is_block_source()) copy.emplace(ctx, input.view, IndexOptions{.copy = true});
    const TableView rows = copy ? copy->table() : input.view;
    *result = known_graph ? lle(ctx, rows, *known_graph, options) : lle(ctx, rows, options);
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

void save_lle(nb::handle model, nb::handle index, const std::string& path, nb::dict keywords) {
  Call call("save", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<Lle>("model", model, "a result of lle");
  const auto held = call.expect<HeldIndex>("index", index, "an Index of the table that was embedded");
  call.run([&](const Context& ctx) { LleModel{.index = held->index, .fitted = *fitted}.save(ctx, path); });
}

nb::object load_lle(const std::string& path, nb::dict keywords) {
  Call call("load", std::move(keywords));
  call.refuse_others();
  std::shared_ptr<const HeldIndex> held;
  std::shared_ptr<const Lle> fitted;
  call.run([&](const Context& ctx) {
    LleModel read = LleModel::load(ctx, path);
    refuse_preparation(read.preparation, path);
    held = std::make_shared<HeldIndex>(HeldIndex{read.index, nullptr});
    fitted = std::make_shared<Lle>(std::move(read.fitted));
  });
  return nb::make_tuple(index_answer(call, held), lle_answer(call, fitted));
}

}  // namespace

void bind_embedding(nb::module_& module) {
  module.def("lle", &lle_call, any("table"), any("graph"), nb::arg("keywords"));
  module.def("save_lle", &save_lle, any("model"), any("index"), nb::arg("path"), nb::arg("keywords"));
  module.def("load_lle", &load_lle, nb::arg("path"), nb::arg("keywords"));
  module.def("lle_transform", &transform_rows, any("index"), any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

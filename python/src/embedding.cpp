// lle and the placing of other rows.
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
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

nb::object lle_call(nb::handle table, nb::handle graph, nb::dict keywords) {
  Call call("lle", std::move(keywords));
  const auto options = call.options(lle_fields());
  call.refuse_others();
  const Input input = call.table("table", table);
  const auto known = graph.is_none()
                         ? nullptr
                         : call.expect<NeighborGraph>("graph", graph, "a NeighborGraph of the table within itself");
  auto result = std::make_shared<Lle>();
  call.run([&](const Context& ctx) {
    *result = known ? lle(ctx, input.view, *known, options) : lle(ctx, input.view, options);
  });
  return Answer(call, std::shared_ptr<const Lle>(result))
      .array("embedding", result->embedding, {input.view.rows(), options.dim})
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

nb::object transform_rows(nb::handle index, nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("transform", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<HeldIndex>("index", index, "an Index of the table that was embedded");
  const auto fitted = call.expect<Lle>("model", model, "a result of lle");
  const Input asked = call.table("queries", queries);
  std::vector<double> coordinates;
  call.run([&](const Context& ctx) { coordinates = transform(ctx, held->index, *fitted, asked.view); });
  return array_of(std::move(coordinates), {asked.view.rows(), fitted->options.dim});
}

}  // namespace

void bind_embedding(nb::module_& module) {
  module.def("lle", &lle_call, any("table"), any("graph"), nb::arg("keywords"));
  module.def("lle_transform", &transform_rows, any("index"), any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

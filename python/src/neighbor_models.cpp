// NeighborModel: all that classify and regress need to answer, kept, saved and loaded.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "functions.hpp"
#include "models.hpp"
#include "options.hpp"
#include "supervised.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

void refuse_count(const char* name, std::int64_t given, std::int64_t rows) {
  if (given == rows) return;
  throw Error(ErrorCode::invalid_argument, std::string(name) + ": " + std::to_string(given) + " rows for a table of " +
                                               std::to_string(rows) + " rows");
}

/// The rows as they are compared, what they borrow from, and what was done to them.
struct PreparedRows {
  Table table;
  Preparation preparation;
};

PreparedRows prepared_rows(const Context& ctx, const Table* table, const TableView& view, const ModelOptions& options) {
  PreparedRows rows;
  const PreparationOptions preparing{.scaling = options.scaling, .texts = options.texts};
  if (table != nullptr) {
    rows.preparation = Preparation::fit(ctx, *table, preparing);
    rows.table = rows.preparation.apply(ctx, *table);
  } else if (options.scaling != Scaling::none) {
    rows.preparation = Preparation::fit(ctx, view, preparing);
    rows.table = rows.preparation.apply(ctx, view);
  } else {
    rows.table.view = view;
  }
  return rows;
}

nb::object fit_call(nb::handle table, nb::handle labels, nb::handle targets, nb::dict keywords) {
  Call call("NeighborModel.fit", std::move(keywords));
  const bool by_radius = is_by_radius(call);
  const auto options = call.options(model_fields(by_radius));
  call.refuse_others();
  if (labels.is_none() == targets.is_none()) {
    throw Error(ErrorCode::invalid_argument, "labels: expected either labels (classes) or targets (numbers)");
  }
  const auto read = call.native<Table>(table);
  const Input input = call.table("table", table);
  const std::int64_t n = input.view.rows();
  std::vector<Labels> outputs;
  std::vector<double> values;
  std::int64_t columns = 0;
  if (targets.is_none()) {
    outputs.push_back(labels_of(call, labels));
    refuse_count("labels", static_cast<std::int64_t>(outputs.front().codes.size()), n);
  } else {
    const Input target_table = call.host_table("targets", targets);
    refuse_count("targets", target_table.view.rows(), n);
    columns = target_table.view.cols();
    values = targets_of(call, target_table);
  }
  if (!by_radius && (options.k < 1 || options.k > n)) {
    throw Error(ErrorCode::invalid_argument, "k: " + std::to_string(options.k) +
                                                 " is not allowed; expected 1 to the table's " + std::to_string(n) +
                                                 " rows");
  }
  if (by_radius && options.radius < 0 && options.metric != Metric::inner_product) {
    throw Error(ErrorCode::invalid_argument,
                "radius: " + std::to_string(options.radius) + " is not allowed; expected a number of at least 0");
  }
  std::shared_ptr<const Held<NeighborModel>> held;
  call.run([&](const Context& ctx) {
    PreparedRows rows = prepared_rows(ctx, read.get(), input.view, options);
    NeighborModel model{.index = Index(ctx, rows.table.view)};
    model.outputs = std::move(outputs);
    model.targets = std::move(values);
    model.target_columns = columns;
    model.k = by_radius ? 0 : options.k;
    model.radius = by_radius ? options.radius : 0;
    model.metric = options.metric;
    model.p = options.p;
    model.weights = options.weights;
    model.preparation = std::move(rows.preparation);
    // The index borrows prepared rows from the one, others from the other.
    const auto storage = std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
        rows.table.storage, input.storage);
    held = std::make_shared<const Held<NeighborModel>>(Held<NeighborModel>{std::move(model), storage});
  });
  return neighbor_model_answer(call, held);
}

nb::object model_classify(nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("classify", std::move(keywords));
  bool probabilities = false;
  std::int64_t output = 0;
  if (const nb::object given = call.keyword("probabilities")) {
    Setting{"probabilities", given, call}.read(probabilities);
  }
  if (const nb::object given = call.keyword("output")) Setting{"output", given, call}.read(output);
  call.refuse_others();
  const auto held = call.expect<Held<NeighborModel>>("model", model, "a NeighborModel");
  const auto outputs = static_cast<std::int64_t>(held->model.outputs.size());
  if (outputs > 0 && (output < 0 || output >= outputs)) {
    throw Error(ErrorCode::invalid_argument,
                "output: " + std::to_string(output) + " is not allowed; expected 0 to " + std::to_string(outputs - 1));
  }
  const ModelRows rows(call, held->model.preparation, "queries", queries);
  auto result = std::make_shared<Classification>();
  call.run([&](const Context& ctx) {
    rows.visit([&](const auto& given) { *result = classify(ctx, held->model, given, probabilities); });
  });
  const auto at = static_cast<std::size_t>(output);
  Answer answer(call, std::shared_ptr<const Classification>(result));
  show(answer, result->votes[at], held->model.outputs[at]);
  return answer.plan(result->plan).stats(result->stats).done();
}

nb::object model_regress(nb::handle model, nb::handle queries, nb::dict keywords) {
  Call call("regress", std::move(keywords));
  double outlier = std::numeric_limits<double>::quiet_NaN();
  if (const nb::object given = call.keyword("outlier")) Setting{"outlier", given, call}.read(outlier);
  call.refuse_others();
  const auto held = call.expect<Held<NeighborModel>>("model", model, "a NeighborModel");
  const ModelRows rows(call, held->model.preparation, "queries", queries);
  auto result = std::make_shared<Regression>();
  call.run([&](const Context& ctx) {
    rows.visit([&](const auto& given) { *result = regress(ctx, held->model, given, outlier); });
  });
  return regression_answer(call, result);
}

}  // namespace

nb::object neighbor_model_answer(const Call& call, const std::shared_ptr<const Held<NeighborModel>>& held) {
  const NeighborModel& model = held->model;
  nb::list classes;
  for (const Labels& labels : model.outputs) classes.append(classes_of(labels));
  Answer answer(call, held);
  answer.value("rows", model.index.rows())
      .value("outputs", std::max(static_cast<std::int64_t>(model.outputs.size()), model.target_columns))
      .value("classes", classes)
      .text("metric", name_of(model.metric))
      .value("p", model.p)
      .text("weights", word_of(model.weights))
      .text("scaling", name_of(model.preparation.scaling()))
      .value("columns", columns_of(model.preparation));
  if (model.k > 0) {
    answer.value("k", model.k).value("radius", nb::none());
  } else {
    answer.value("k", nb::none()).value("radius", model.radius);
  }
  return answer.done();
}

void bind_neighbor_models(nb::module_& module) {
  module.def("neighbor_model", &fit_call, any("table"), any("labels"), any("targets"), nb::arg("keywords"));
  module.def("model_classify", &model_classify, any("model"), any("queries"), nb::arg("keywords"));
  module.def("model_regress", &model_regress, any("model"), any("queries"), nb::arg("keywords"));
}

}  // namespace vicinal::python

// kmeans, predict, transform, score, and models of given centers.
#include <cmath>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "models.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::object kmeans_call(nb::handle table, nb::dict keywords) {
  Call call("kmeans", std::move(keywords));
  const auto options = call.options(kmeans_fields());
  call.refuse_others();
  const Input input = call.table("table", table);
  auto model = std::make_shared<KMeansModel>();
  call.run([&](const Context& ctx) { model->fitted = kmeans(ctx, input.view, options); });
  return kmeans_answer(call, model);
}

nb::object model_call(nb::handle centres, nb::dict keywords) {
  Call call("KMeans.of", std::move(keywords));
  auto model = std::make_shared<KMeansModel>();
  KMeans& fitted = model->fitted;
  if (const nb::object metric = call.keyword("metric")) Setting{"metric", metric, call}.read(fitted.metric);
  call.refuse_others();
  const Input input = call.host_table("centres", centres);
  const TableView& view = input.view;
  call.run([&](const Context& ctx) {
    // All rows, in order, widened to float64.
    fitted.centres = sample_rows(ctx, view, view.rows()).values;
  });
  fitted.clusters = view.rows();
  fitted.cols = view.cols();
  fitted.sizes.resize(static_cast<std::size_t>(view.rows()));
  const auto cols = static_cast<std::size_t>(view.cols());
  for (std::size_t i = 0; i < fitted.centres.size(); ++i) {
    if (std::isfinite(fitted.centres[i])) continue;
    throw Error(ErrorCode::bad_data,
                "centres: row " + std::to_string(i / cols) + ", column " + std::to_string(i % cols) + " is not finite");
  }
  call.count_copied(static_cast<std::int64_t>(fitted.centres.size() * sizeof(double)));
  return kmeans_answer(call, model);
}

nb::object predict_call(nb::handle model, nb::handle table, nb::dict keywords) {
  Call call("predict", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<KMeansModel>("model", model, "a KMeans");
  const ModelRows rows(call, fitted->preparation, "table", table);
  std::vector<std::int32_t> labels;
  call.run([&](const Context& ctx) { rows.visit([&](const auto& given) { labels = predict(ctx, *fitted, given); }); });
  return array_of(std::move(labels), {rows.rows()});
}

nb::object transform_call(nb::handle model, nb::handle table, nb::dict keywords) {
  Call call("transform", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<KMeansModel>("model", model, "a KMeans");
  const ModelRows rows(call, fitted->preparation, "table", table);
  std::vector<double> distances;
  call.run(
      [&](const Context& ctx) { rows.visit([&](const auto& given) { distances = transform(ctx, *fitted, given); }); });
  return array_of(std::move(distances), {rows.rows(), fitted->fitted.clusters});
}

double score_call(nb::handle model, nb::handle table, nb::dict keywords) {
  Call call("score", std::move(keywords));
  std::span<const double> weights;
  if (const nb::object given = call.keyword("weights")) weights = call.numbers("weights", given);
  call.refuse_others();
  const auto fitted = call.expect<KMeansModel>("model", model, "a KMeans");
  const ModelRows rows(call, fitted->preparation, "table", table);
  double sum = 0;
  call.run(
      [&](const Context& ctx) { rows.visit([&](const auto& given) { sum = score(ctx, *fitted, given, weights); }); });
  return sum;
}

}  // namespace

nb::object kmeans_answer(const Call& call, const std::shared_ptr<const KMeansModel>& model) {
  const KMeans& fitted = model->fitted;
  nb::dict stats;
  stats["assigned"] = fitted.stats.assigned;
  stats["skipped"] = fitted.stats.skipped;
  stats["rechecked"] = fitted.stats.rechecked;
  stats["seed_seconds"] = fitted.stats.seed_seconds;
  stats["iterate_seconds"] = fitted.stats.iterate_seconds;
  return Answer(call, model)
      .value("clusters", fitted.clusters)
      .value("cols", fitted.cols)
      .text("metric", name_of(fitted.metric))
      .array("centres", fitted.centres, {fitted.clusters, fitted.cols})
      .array("labels", fitted.labels)
      .array("sizes", fitted.sizes)
      .value("inertia", fitted.inertia)
      .value("iterations", fitted.iterations)
      .text("stopped", name_of(fitted.stopped))
      .value("prepared", model->preparation.changes_rows())
      .array("history", fitted.history)
      .plan(fitted.plan)
      .value("stats", stats)
      .done();
}

void bind_clusters(nb::module_& module) {
  module.def("kmeans", &kmeans_call, any("table"), nb::arg("keywords"));
  module.def("kmeans_of", &model_call, any("centres"), nb::arg("keywords"));
  module.def("kmeans_predict", &predict_call, any("model"), any("table"), nb::arg("keywords"));
  module.def("kmeans_transform", &transform_call, any("model"), any("table"), nb::arg("keywords"));
  module.def("kmeans_score", &score_call, any("model"), any("table"), nb::arg("keywords"));
}

}  // namespace vicinal::python

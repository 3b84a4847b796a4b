// kmeans, predict, transform, score, and models of given centres and of files.
#include <cmath>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::object kmeans_answer(const Call& call, const std::shared_ptr<const KMeans>& model) {
  nb::dict stats;
  stats["assigned"] = model->stats.assigned;
  stats["skipped"] = model->stats.skipped;
  stats["rechecked"] = model->stats.rechecked;
  stats["seed_seconds"] = model->stats.seed_seconds;
  stats["iterate_seconds"] = model->stats.iterate_seconds;
  return Answer(call, model)
      .value("clusters", model->clusters)
      .value("cols", model->cols)
      .text("metric", name_of(model->metric))
      .array("centres", model->centres, {model->clusters, model->cols})
      .array("labels", model->labels)
      .array("sizes", model->sizes)
      .value("inertia", model->inertia)
      .value("iterations", model->iterations)
      .text("stopped", name_of(model->stopped))
      .array("history", model->history)
      .plan(model->plan)
      .value("stats", stats)
      .done();
}

nb::object kmeans_call(nb::handle table, nb::dict keywords) {
  Call call("kmeans", std::move(keywords));
  const auto options = call.options(kmeans_fields());
  call.refuse_others();
  const Input input = call.table("table", table);
  auto model = std::make_shared<KMeans>();
  call.run([&](const Context& ctx) { *model = kmeans(ctx, input.view, options); });
  return kmeans_answer(call, model);
}

nb::object model_call(nb::handle centres, nb::dict keywords) {
  Call call("KMeans.of", std::move(keywords));
  auto model = std::make_shared<KMeans>();
  if (const nb::object metric = call.keyword("metric")) Setting{"metric", metric, call}.read(model->metric);
  call.refuse_others();
  const Input input = call.host_table("centres", centres);
  const TableView& view = input.view;
  call.run([&](const Context& ctx) {
    // All rows, in order, widened to float64.
    model->centres = sample_rows(ctx, view, view.rows()).values;
  });
  model->clusters = view.rows();
  model->cols = view.cols();
  const auto cols = static_cast<std::size_t>(view.cols());
  for (std::size_t i = 0; i < model->centres.size(); ++i) {
    if (std::isfinite(model->centres[i])) continue;
    throw Error(ErrorCode::bad_data,
                "centres: row " + std::to_string(i / cols) + ", column " + std::to_string(i % cols) + " is not finite");
  }
  call.count_copied(static_cast<std::int64_t>(model->centres.size() * sizeof(double)));
  return kmeans_answer(call, model);
}

void save_kmeans(nb::handle model, const std::string& path, nb::dict keywords) {
  Call call("save", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<KMeans>("model", model, "a KMeans");
  call.run([&](const Context& ctx) { KMeansModel{.fitted = *fitted}.save(ctx, path); });
}

nb::object load_kmeans(const std::string& path, nb::dict keywords) {
  Call call("load", std::move(keywords));
  call.refuse_others();
  auto model = std::make_shared<KMeans>();
  call.run([&](const Context& ctx) {
    KMeansModel read = KMeansModel::load(ctx, path);
    refuse_preparation(read.preparation, path);
    *model = std::move(read.fitted);
  });
  return kmeans_answer(call, model);
}

nb::object predict_call(nb::handle model, nb::handle table, nb::dict keywords) {
  Call call("predict", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<KMeans>("model", model, "a KMeans");
  const Input input = call.table("table", table);
  std::vector<std::int32_t> labels;
  call.run([&](const Context& ctx) { labels = predict(ctx, *fitted, input.view); });
  return array_of(std::move(labels), {input.view.rows()});
}

nb::object transform_call(nb::handle model, nb::handle table, nb::dict keywords) {
  Call call("transform", std::move(keywords));
  call.refuse_others();
  const auto fitted = call.expect<KMeans>("model", model, "a KMeans");
  const Input input = call.table("table", table);
  std::vector<double> distances;
  call.run([&](const Context& ctx) { distances = transform(ctx, *fitted, input.view); });
  return array_of(std::move(distances), {input.view.rows(), fitted->clusters});
}

double score_call(nb::handle model, nb::handle table, nb::dict keywords) {
  Call call("score", std::move(keywords));
  std::span<const double> weights;
  if (const nb::object given = call.keyword("weights")) weights = call.numbers("weights", given);
  call.refuse_others();
  const auto fitted = call.expect<KMeans>("model", model, "a KMeans");
  const Input input = call.table("table", table);
  double sum = 0;
  call.run([&](const Context& ctx) { sum = score(ctx, *fitted, input.view, weights); });
  return sum;
}

}  // namespace

void bind_clusters(nb::module_& module) {
  module.def("kmeans", &kmeans_call, any("table"), nb::arg("keywords"));
  module.def("kmeans_of", &model_call, any("centres"), nb::arg("keywords"));
  module.def("save_kmeans", &save_kmeans, any("model"), nb::arg("path"), nb::arg("keywords"));
  module.def("load_kmeans", &load_kmeans, nb::arg("path"), nb::arg("keywords"));
  module.def("kmeans_predict", &predict_call, any("model"), any("table"), nb::arg("keywords"));
  module.def("kmeans_transform", &transform_call, any("model"), any("table"), nb::arg("keywords"));
  module.def("kmeans_score", &score_call, any("model"), any("table"), nb::arg("keywords"));
}

}  // namespace vicinal::python

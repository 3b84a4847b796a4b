// vote, classify, average, regress, cross_validate.
#include "supervised.hpp"

#include <utility>

#include "functions.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
Labels labels_of(Call& call, nb::handle value) {
  const nb::tuple answer = nb::cast<nb::tuple>(nb::module_::import_("vicinal._tables").attr("labels")(value, "labels"));
  call.count_copied(nb::cast<std::int64_t>(answer[2]));
  if (nb::cast<std::string>(answer[0]) == "int") return encode_labels(call.integers("labels", answer[1]));
  std::vector<std::string> texts;
  for (const nb::handle text : nb::cast<nb::list>(answer[1])) texts.push_back(nb::cast<std::string>(text));
  return encode_labels(texts);
}

bool is_by_radius(Call& call) {
  if (call.has("k") && call.has("radius")) {
    throw Error(ErrorCode::invalid_argument, "radius: expected either k or radius, not both");
  }
  const bool by_radius = call.has("radius");
  (void)call.keyword(by_radius ? "k" : "radius");  // which is None, or not there
  return by_radius;
}

nb::object classes_of(const Labels& labels) {
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&labels.classes)) {
    return array_of(std::vector<std::int64_t>(*numbers), {static_cast<std::int64_t>(numbers->size())});
  }
  nb::list texts;
  for (const std::string& text : std::get<std::vector<std::string>>(labels.classes)) {
    texts.append(nb::str(text.data(), text.size()));
  }
  return nb::module_::import_("numpy").attr("array")(texts);
}

void show(Answer& answer, const Vote& vote, const Labels& labels) {
  const auto rows = static_cast<std::int64_t>(vote.codes.size());
  answer.array("codes", vote.codes).value("classes", classes_of(labels));
  if (vote.probabilities.empty()) {
    answer.value("probabilities", nb::none());
  } else {
    answer.array("probabilities", vote.probabilities, {rows, vote.class_count});
  }
}

std::vector<double> targets_of(Call& call, const Input& targets) {
  std::vector<double> values;
  // All rows, in order.
  call.run([&](const Context& ctx) { values = sample_rows(ctx, targets.view, targets.view.rows()).values; });
  return values;
}

nb::object regression_answer(const Call& call, const std::shared_ptr<const Regression>& result) {
  return Answer(call, result)
      .array("values", result->values, {result->rows, result->outputs})
      .value("outliers", result->outliers)
      .plan(result->plan)
      .stats(result->stats)
      .done();
}

namespace {

nb::object vote_call(nb::handle graph, nb::handle labels, nb::dict keywords) {
  Call call("vote", std::move(keywords));
  const auto options = call.options(vote_fields());
  call.refuse_others();
  const auto held = call.expect<NeighborGraph>("graph", graph, "a NeighborGraph");
  const Labels encoded = labels_of(call, labels);
  auto result = std::make_shared<Vote>();
  call.run([&](const Context& ctx) { *result = vote(ctx, *held, encoded, options); });
  Answer answer(call, std::shared_ptr<const Vote>(result));
  show(answer, *result, encoded);
  return answer.done();
}

nb::object classify_call(nb::handle table, nb::handle queries, nb::handle labels, nb::dict keywords) {
  Call call("classify", std::move(keywords));
  const bool by_radius = is_by_radius(call);
  const auto near = by_radius ? KnnOptions{} : call.options(nearest_fields());
  const auto within = by_radius ? call.options(radius_fields()) : RadiusOptions{};
  const auto voting = call.options(vote_fields());
  call.refuse_others();
  const Searched searched(call, table);
  const Input query_table = call.table("queries", queries);
  const std::vector<Labels> outputs = {labels_of(call, labels)};
  auto result = std::make_shared<Classification>();
  call.run([&](const Context& ctx) {
    searched.visit([&](const auto& in) {
      *result = by_radius ? classify_radius(ctx, in, query_table.view, outputs, within, voting)
                          : classify(ctx, in, query_table.view, outputs, near, voting);
    });
  });
  Answer answer(call, std::shared_ptr<const Classification>(result));
  show(answer, result->votes.front(), outputs.front());
  return answer.plan(result->plan).stats(result->stats).done();
}

nb::object average_call(nb::handle graph, nb::handle targets, nb::dict keywords) {
  Call call("average", std::move(keywords));
  const auto options = call.options(regress_fields());
  call.refuse_others();
  const auto held = call.expect<NeighborGraph>("graph", graph, "a NeighborGraph");
  const Input target_table = call.host_table("targets", targets);
  std::vector<double> values;
  call.run([&](const Context& ctx) { values = average(ctx, *held, target_table.view, options); });
  return array_of(std::move(values), {held->rows, target_table.view.cols()});
}

nb::object regress_call(nb::handle table, nb::handle queries, nb::handle targets, nb::dict keywords) {
  Call call("regress", std::move(keywords));
  const bool by_radius = is_by_radius(call);
  const auto near = by_radius ? KnnOptions{} : call.options(nearest_fields());
  const auto within = by_radius ? call.options(radius_fields()) : RadiusOptions{};
  const auto averaging = call.options(regress_fields());
  call.refuse_others();
  const Searched searched(call, table);
  const Input query_table = call.table("queries", queries);
  const Input target_table = call.host_table("targets", targets);
  auto result = std::make_shared<Regression>();
  call.run([&](const Context& ctx) {
    searched.visit([&](const auto& in) {
      *result = by_radius ? regress_radius(ctx, in, query_table.view, target_table.view, within, averaging)
                          : regress(ctx, in, query_table.view, target_table.view, near, averaging);
    });
  });
  return regression_answer(call, result);
}

nb::object cross_validate_call(nb::handle table, nb::handle labels, nb::handle targets, nb::dict keywords) {
  Call call("cross_validate", std::move(keywords));
  const auto options = call.options(cross_validate_fields());
  call.refuse_others();
  if (labels.is_none() == targets.is_none()) {
    throw Error(ErrorCode::invalid_argument, "labels: expected either labels (classes) or targets (numbers)");
  }
  const Searched searched(call, table);
  auto result = std::make_shared<CrossValidation>();
  if (targets.is_none()) {
    const Labels encoded = labels_of(call, labels);
    call.run([&](const Context& ctx) {
      searched.visit([&](const auto& in) { *result = cross_validate(ctx, in, encoded, options); });
    });
  } else {
    const Input target_table = call.host_table("targets", targets);
    call.run([&](const Context& ctx) {
      searched.visit([&](const auto& in) { *result = cross_validate(ctx, in, target_table.view, options); });
    });
  }
  const auto tried = static_cast<std::int64_t>(result->scores.size());
  return Answer(call, std::shared_ptr<const CrossValidation>(result))
      .value("k", result->k)
      .value("score", result->score)
      .text("criterion", targets.is_none() ? "accuracy" : "mean squared error")
      .value("first_k", options.k)
      .array("scores", result->scores)
      .array("fold_scores", result->fold_scores, {tried, options.folds})
      .array("fold_of", result->fold_of)
      .array("fold_sizes", result->fold_sizes)
      .value("searched", result->searched)
      .value("topped_up", result->topped_up)
      .plan(result->plan)
      .stats(result->stats)
      .value("score_seconds", result->score_seconds)
      .done();
}

}  // namespace

void bind_supervised(nb::module_& module) {
  module.def("vote", &vote_call, any("graph"), any("labels"), nb::arg("keywords"));
  module.def("classify", &classify_call, any("table"), any("queries"), any("labels"), nb::arg("keywords"));
  module.def("average", &average_call, any("graph"), any("targets"), nb::arg("keywords"));
  module.def("regress", &regress_call, any("table"), any("queries"), any("targets"), nb::arg("keywords"));
  module.def("cross_validate", &cross_validate_call, any("table"), any("labels"), any("targets"), nb::arg("keywords"));
}

}  // namespace vicinal::python

// NeighborModel: its file is an index (ops/nearest/index_file.hpp) with labels or targets as further arrays, and the
// options as texts of its metadata. A file says nothing that is not checked: what is read passes the checks that a
// caller's own model passes before it is saved.
#include "vicinal/neighbor_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "ops/common/check.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/preparation_text.hpp"
#include "ops/common/prepared_rows.hpp"
#include "ops/nearest/index_file.hpp"

namespace vicinal {
namespace {

using nlohmann::json;
using ops::kNeighborFile;
using ops::ModelReader;
using ops::text_of;

constexpr const char* kWeightNames[] = {"uniform", "distance"};

[[noreturn]] void refuse_model(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, "model: " + sentence);
}

void check_classes(const Labels& labels) {
  const auto ascend = [](const auto& list) {
    return std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) == list.end();
  };
  if (!std::visit(ascend, labels.classes)) refuse_model("the classes of its labels do not ascend");
}

/// What both a caller's model and a file's must be.
void check_model(const NeighborModel& model) {
  const std::int64_t n = model.index.rows();
  if (model.outputs.empty() == model.targets.empty()) refuse_model("it needs either labels or targets");
  for (const Labels& labels : model.outputs) {
    check_labels(labels, n);
    check_classes(labels);
  }
  if (!model.targets.empty()) {
    std::int64_t size = 0;
    if (model.target_columns < 1 || __builtin_mul_overflow(n, model.target_columns, &size) ||
        size != static_cast<std::int64_t>(model.targets.size())) {
      refuse_model("it has " + std::to_string(model.targets.size()) + " targets for " + std::to_string(n) +
                   " rows of " + std::to_string(model.target_columns));
    }
    if (!std::all_of(model.targets.begin(), model.targets.end(), [](double x) { return std::isfinite(x); })) {
      refuse_model("its targets are not all finite");
    }
  }
  if (model.k < 0 || model.k > n)
    refuse_model("k is " + std::to_string(model.k) + " for " + std::to_string(n) + " rows");
  if (!std::isfinite(model.radius) || (model.radius < 0 && model.metric != Metric::inner_product)) {
    refuse_model("its radius is negative or not finite");
  }
  if (!(model.p >= 1) || std::isinf(model.p)) refuse_model("p is not a finite number from 1");
  if (model.weights == Weighting::custom) refuse_model("custom weights are a function, which no file can hold");
  check_weights(model.weights, {}, model.metric, "model");
}

Labels read_stored_labels(ModelReader& file, const std::string& number, std::int64_t n) {
  Labels read;
  const ops::ModelArray* const codes = file.array("labels_" + number, "I64", {n});
  if (codes == nullptr) file.refuse("its labels do not number its rows");
  for (const std::int64_t code : ModelReader::values<std::int64_t>(*codes)) {
    file.require(code >= 0 && code <= std::numeric_limits<std::int32_t>::max(), "its labels have a code that is none");
    read.codes.push_back(static_cast<std::int32_t>(code));
  }
  if (const ops::ModelArray* const classes = file.array("classes_" + number, "I64", {-1})) {
    read.classes = ModelReader::values<std::int64_t>(*classes);
    return read;
  }
  const json texts = json::parse(file.text("classes_" + number), nullptr, false);
  std::vector<std::string> names;
  file.require(texts.is_array(), "its classes are no list of texts");
  for (const json& one : texts) {
    file.require(one.is_string(), "its classes are no list of texts");
    names.push_back(one.get<std::string>());
  }
  read.classes = std::move(names);
  return read;
}

void read_model(ModelReader& file, std::int64_t n, NeighborModel& model) {
  model.k = file.number<std::int64_t>("k");
  model.radius = file.number<double>("radius");
  model.metric = file.named("metric", metric_from);
  model.p = file.number<double>("p");
  const std::string& weights = file.text("weights");
  if (weights != kWeightNames[0] && weights != kWeightNames[1]) file.refuse("its 'weights' is not known");
  model.weights = weights == kWeightNames[0] ? Weighting::uniform : Weighting::distance;
  model.notes = file.text("notes");
  model.preparation = ops::read_preparation(file, model.index.cols(), model.notes);
  const auto outputs = file.number<std::int64_t>("outputs");
  if (outputs < 0 || outputs > std::numeric_limits<std::int32_t>::max()) file.refuse("its 'outputs' is not a number");
  for (std::int64_t o = 0; o < outputs; ++o) model.outputs.push_back(read_stored_labels(file, std::to_string(o), n));
  if (const ops::ModelArray* const targets = file.array("targets", "F64", {n, -1})) {
    model.target_columns = targets->shape[1];
    model.targets = ModelReader::values<double>(*targets);
  }
  file.require_all_seen();
  check_model(model);
}

template <class Rows>
Classification classify_rows(const Context& ctx, const NeighborModel& model, const Rows& queries, bool probabilities) {
  check_model(model);
  if (model.outputs.empty()) refuse_model("it has targets, not labels; use regress");
  const VoteOptions voting{.weights = model.weights, .probabilities = probabilities};
  return ops::with_prepared(ctx, model.preparation, queries, "queries",
                            [&](const Context& rest, const TableView& rows) {
                              if (model.k > 0) {
                                const KnnOptions search{.k = model.k, .metric = model.metric, .p = model.p};
                                return classify(rest, model.index, rows, model.outputs, search, voting);
                              }
                              const RadiusOptions search{.radius = model.radius, .metric = model.metric, .p = model.p};
                              return classify_radius(rest, model.index, rows, model.outputs, search, voting);
                            });
}

template <class Rows>
Regression regress_rows(const Context& ctx, const NeighborModel& model, const Rows& queries, double outlier) {
  check_model(model);
  if (model.targets.empty()) refuse_model("it has labels, not targets; use classify");
  const TableView targets(model.targets.data(), model.index.rows(), model.target_columns);
  const RegressOptions averaging{.weights = model.weights, .outlier = outlier};
  return ops::with_prepared(ctx, model.preparation, queries, "queries",
                            [&](const Context& rest, const TableView& rows) {
                              if (model.k > 0) {
                                const KnnOptions search{.k = model.k, .metric = model.metric, .p = model.p};
                                return regress(rest, model.index, rows, targets, search, averaging);
                              }
                              const RadiusOptions search{.radius = model.radius, .metric = model.metric, .p = model.p};
                              return regress_radius(rest, model.index, rows, targets, search, averaging);
                            });
}

}  // namespace

void NeighborModel::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  check_model(*this);
  const std::int64_t n = index.rows();
  ops::ModelParts parts;
  parts.metadata = {{"k", text_of(k)},
                    {"radius", text_of(radius)},
                    {"metric", std::string(name_of(metric))},
                    {"p", text_of(p)},
                    {"weights", kWeightNames[weights == Weighting::distance ? 1 : 0]},
                    {"outputs", text_of(static_cast<std::int64_t>(outputs.size()))},
                    {"notes", notes}};
  core::require_memory(ctx, outputs.size() * static_cast<std::uint64_t>(n) * 8, "saving the model");
  std::vector<std::vector<std::int64_t>> codes;
  codes.reserve(outputs.size());  // arrays borrow from it
  for (const Labels& labels : outputs) {
    const std::string number = std::to_string(codes.size());
    codes.emplace_back(labels.codes.begin(), labels.codes.end());
    parts.arrays.push_back({"labels_" + number, "I64", {n}, codes.back().data()});
    if (const auto* const whole = std::get_if<std::vector<std::int64_t>>(&labels.classes)) {
      parts.arrays.push_back({"classes_" + number, "I64", {static_cast<std::int64_t>(whole->size())}, whole->data()});
      continue;
    }
    try {
      parts.metadata["classes_" + number] = json(std::get<std::vector<std::string>>(labels.classes)).dump();
    } catch (const json::exception&) {
      refuse_model("its classes are not UTF-8, which its file needs");
    }
  }
  if (!targets.empty()) parts.arrays.push_back({"targets", "F64", {n, target_columns}, targets.data()});
  ops::add_preparation(parts, preparation, index.cols());
  ops::write_index(ctx, path, kernels::prepared_of(index), kNeighborFile, parts);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborModel NeighborModel::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  ops::ModelParts parts;  // borrow from the file's bytes, which the index keeps
  NeighborModel model{kernels::index_of(ops::load_index(ctx, path, kNeighborFile, &parts))};
  core::require_memory(ctx, ops::numbers_in(parts) * 16, "loading the model '" + path.string() + "'");
  ModelReader file(kNeighborFile, path, parts);
  file.checked([&] { read_model(file, model.index.rows(), model); });
  return model;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Classification classify(const Context& ctx, const NeighborModel& model, const Table& queries, bool probabilities) try {
  const core::Entry entry;
  return classify_rows(ctx, model, queries, probabilities);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Classification classify(const Context& ctx, const NeighborModel& model, const TableView& queries,
                        bool probabilities) try {
  const core::Entry entry;
  return classify_rows(ctx, model, queries, probabilities);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Regression regress(const Context& ctx, const NeighborModel& model, const Table& queries, double outlier) try {
  const core::Entry entry;
  return regress_rows(ctx, model, queries, outlier);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Regression regress(const Context& ctx, const NeighborModel& model, const TableView& queries, double outlier) try {
  const core::Entry entry;
  return regress_rows(ctx, model, queries, outlier);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

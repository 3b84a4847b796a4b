// Files of indexes and models, as the command and C++ read them, too.
#include "models.hpp"

#include <utility>

#include "functions.hpp"
#include "graphs.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Saves `value` where it is a T; false where it is none.
template <class T, class Save>
bool save_as(Call& call, nb::handle value, const Save& save) {
  const auto held = call.native<T>(value);
  if (held == nullptr) return false;
  call.run([&](const Context& ctx) { save(ctx, *held); });
  return true;
}

void save_call(nb::handle value, const std::string& path, nb::dict keywords) {
  Call call("save", std::move(keywords));
  call.refuse_others();
  const auto model = [&](const Context& ctx, const auto& held) { held.model.save(ctx, path); };
  if (save_as<HeldIndex>(call, value, [&](const Context& ctx, const HeldIndex& held) { held.index.save(ctx, path); }) ||
      save_as<KMeansModel>(call, value, [&](const Context& ctx, const KMeansModel& held) { held.save(ctx, path); }) ||
      save_as<Held<LofModel>>(call, value, model) || save_as<Held<HdbscanModel>>(call, value, model) ||
      save_as<Held<LleModel>>(call, value, model) || save_as<Held<NeighborModel>>(call, value, model)) {
    return;
  }
  refuse("model", value, "an Index or a model");
}

template <class Model>
std::shared_ptr<const Held<Model>> loaded(Call& call, const std::string& path) {
  std::shared_ptr<const Held<Model>> held;
  call.run([&](const Context& ctx) { held = std::make_shared<Held<Model>>(Held<Model>{Model::load(ctx, path), {}}); });
  return held;
}

/// `kind`: the class of the package that the file holds.
nb::object load_call(const std::string& kind, const std::string& path, nb::dict keywords) {
  Call call("load", std::move(keywords));
  call.refuse_others();
  if (kind == "LofModel") return lof_model_answer(call, loaded<LofModel>(call, path));
  if (kind == "HdbscanModel") return hdbscan_model_answer(call, loaded<HdbscanModel>(call, path));
  if (kind == "LleModel") return lle_model_answer(call, loaded<LleModel>(call, path));
  if (kind == "NeighborModel") return neighbor_model_answer(call, loaded<NeighborModel>(call, path));
  if (kind == "KMeans") {
    const auto model = std::make_shared<KMeansModel>();
    call.run([&](const Context& ctx) { *model = KMeansModel::load(ctx, path); });
    return kmeans_answer(call, model);
  }
  std::shared_ptr<const HeldIndex> held;
  call.run([&](const Context& ctx) { held = std::make_shared<HeldIndex>(HeldIndex{Index::load(ctx, path), nullptr}); });
  return index_answer(call, held);
}

/// The path that an object stands for; empty where it is none.
std::string path_of(nb::handle value) {
  if (!nb::isinstance<nb::str>(value) && !nb::hasattr(value, "__fspath__")) return {};
  return nb::cast<std::string>(nb::str(nb::module_::import_("os").attr("fspath")(value)));
}

}  // namespace

std::vector<std::string> columns_of(const Preparation& preparation) {
  std::vector<std::string> names;
  for (const Preparation::Column& column : preparation.columns()) {
    names.push_back(column.name.empty() ? std::to_string(names.size()) : column.name);
  }
  return names;
}

ModelRows::ModelRows(Call& call, const Preparation& preparation, const char* name, nb::handle value)
    : table_(call.native<Table>(value)) {
  if (table_ != nullptr) return;
  const std::string path = path_of(value);
  if (path.empty()) {
    input_ = call.table(name, value);
    return;
  }
  auto read = std::make_shared<Table>();
  call.run([&](const Context& ctx) { *read = preparation.read(ctx, path); });
  table_ = read;
}

void bind_models(nb::module_& module) {
  module.def("save", &save_call, any("model"), nb::arg("path"), nb::arg("keywords"));
  module.def("load", &load_call, nb::arg("kind"), nb::arg("path"), nb::arg("keywords"));
}

}  // namespace vicinal::python

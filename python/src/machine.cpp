// doctor: what this build can do on this machine. pca, for pictures.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "vicinal/device.hpp"
#include "vicinal/version.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::dict doctor_call(nb::dict keywords) {
  Call call("doctor", std::move(keywords));
  call.refuse_others();
  CudaStatus cuda;
  nb::dict seen;
  std::string device;
  std::string isa;
  int threads = 0;
  std::uint64_t memory = 0;
  bool right = false;
  call.run([&](const Context& ctx) {
    device = ctx.device();
    isa = name_of(ctx.isa());
    threads = ctx.threads();
    memory = ctx.memory_limit();
    cuda = cuda_status();
    // Four points on a line at 0, 1, 3, 7, whose nearest other ones are known.
    const std::vector<double> points = {0, 1, 3, 7};
    const NeighborGraph graph = knn(ctx, TableView(points.data(), 4, 1), {.k = 1});
    right = graph.ids == std::vector<std::int64_t>{1, 0, 1, 2} && graph.distances == std::vector<double>{1, 1, 2, 4};
  });
  nb::list devices;
  for (const DeviceInfo& info : cuda.devices) {
    nb::dict one;
    one["name"] = info.name;
    one["model"] = info.model;
    one["memory"] = info.memory;
    one["compute_capability"] = info.compute_capability;
    devices.append(one);
  }
  seen["version"] = VICINAL_VERSION;
  seen["device"] = device;
  seen["isa"] = isa;
  seen["threads"] = threads;
  seen["memory_limit"] = memory;
  seen["self_test"] = right;
  seen["cuda_driver"] = cuda.driver_version;
  seen["cuda_devices"] = devices;
  seen["cuda_plugin"] = cuda.plugin;
  seen["cuda_missing"] = cuda.missing;
  return seen;
}

/// The first two principal axes of a table, and its rows on them, for pictures.
nb::dict pca_call(nb::handle table, nb::dict keywords) {
  Call call("pca", std::move(keywords));
  call.refuse_others();
  const Input input = call.table("table", table);
  Pca found;
  std::vector<double> points;
  call.run([&](const Context& ctx) {
    found = pca(ctx, input.view, {.components = std::min<std::int64_t>(2, input.view.cols())});
    points = transform(ctx, found, input.view);
  });
  nb::dict seen;
  seen["points"] = array_of(std::move(points), {input.view.rows(), found.components});
  seen["axes"] = array_of(std::move(found.axes), {found.components, found.cols});
  seen["mean"] = copy_of(found.mean);
  seen["ratio"] = copy_of(found.explained_variance_ratio);
  return seen;
}

/// The file that an installed package brings for a plug-in; empty for none.
std::filesystem::path packaged_plugin(Plugin plugin) {
  const nb::gil_scoped_acquire held;
  const std::string_view name = name_of(plugin);
  const nb::object find = nb::module_::import_("vicinal._plugins").attr("find");
  const nb::tuple found = nb::cast<nb::tuple>(find(nb::str(name.data(), name.size())));
  const auto path = nb::cast<nb::bytes>(found[0]);
  const auto fault = nb::cast<std::string>(found[1]);
  if (!fault.empty()) throw Error(ErrorCode::device_unavailable, fault);
  return std::string(path.c_str(), path.size());
}

void use_plugin_call(nb::handle plugin, nb::handle path) {
  Call call("use_plugin", nb::dict());
  Plugin which = Plugin::cuda;
  std::string file;
  Setting{"plugin", plugin, call}.read(which);
  Setting{"path", path, call}.read(file);
  set_plugin(which, file);
  forget_sessions();  // of a device that was not there before
}

}  // namespace

void bind_machine(nb::module_& module) {
  set_plugin_finder(&packaged_plugin);
  module.def("pca", &pca_call, any("table"), nb::arg("keywords"));
  module.def("doctor", &doctor_call, nb::arg("keywords"));
  module.def("thread_limit", &thread_limit);
  module.def("use_plugin", &use_plugin_call, any("plugin"), any("path"));
}

}  // namespace vicinal::python

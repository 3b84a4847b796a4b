// The extension vicinal._core. It is private to the package: arguments are what vicinal/*.py passes.
#include <nanobind/nanobind.h>

#include "call.hpp"
#include "errors.hpp"
#include "functions.hpp"
#include "options.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace vicinal::python;
  // At exit results may still be alive; that is no leak.
  nb::set_leak_warnings(false);
  translate_errors();
  const nb::class_<Native> native(module, "Native");
  module.attr("__version__") = VICINAL_VERSION;
  module.def("defaults", &defaults);
  bind_nearest(module);
  bind_models(module);
  bind_neighbor_models(module);
  bind_supervised(module);
  bind_outliers(module);
  bind_clusters(module);
  bind_density(module);
  bind_hdbscan(module);
  bind_parts(module);
  bind_steps(module);
  bind_embedding(module);
  bind_coclusters(module);
  bind_maps(module);
  bind_files(module);
  bind_machine(module);
  bind_command(module);
}

// The functions of the module vicinal._core, by subject. Each takes its arguments and a dictionary of keywords, and
// returns what vicinal/*.py makes a result of.
#pragma once

#include <nanobind/nanobind.h>

namespace vicinal::python {

/// An argument that may be any object, None included: errors are ours.
inline auto any(const char* name) {
  return nanobind::arg(name).none();
}

void bind_nearest(nanobind::module_& module);
void bind_models(nanobind::module_& module);
void bind_neighbor_models(nanobind::module_& module);
void bind_supervised(nanobind::module_& module);
void bind_outliers(nanobind::module_& module);
void bind_clusters(nanobind::module_& module);
void bind_density(nanobind::module_& module);
void bind_hdbscan(nanobind::module_& module);
void bind_parts(nanobind::module_& module);
void bind_steps(nanobind::module_& module);
void bind_embedding(nanobind::module_& module);
void bind_coclusters(nanobind::module_& module);
void bind_maps(nanobind::module_& module);
void bind_files(nanobind::module_& module);
void bind_machine(nanobind::module_& module);
void bind_command(nanobind::module_& module);

}  // namespace vicinal::python

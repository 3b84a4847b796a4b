// cocluster and spectral_cocluster.
#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// Edges a[e], b[e] between n_a and n_b members, borrowed for the call; sizes by default those of the largest ids.
BipartiteEdges edges_of(Call& call, nb::handle a, nb::handle b) {
  std::int64_t n_a = -1;
  std::int64_t n_b = -1;
  std::span<const double> weights;
  if (const nb::object given = call.keyword("n_a")) Setting{"n_a", given, call}.read(n_a);
  if (const nb::object given = call.keyword("n_b")) Setting{"n_b", given, call}.read(n_b);
  if (const nb::object given = call.keyword("weights")) weights = call.numbers("weights", given);
  call.refuse_others();
  const auto ids_a = call.integers("a", a);
  const auto ids_b = call.integers("b", b);
  const auto size = [](std::int64_t given, std::span<const std::int64_t> ids) {
    if (given >= 0) return given;
    std::int64_t largest = -1;
    for (const std::int64_t id : ids) largest = std::max(largest, id);
    return largest + 1;
  };
  return {size(n_a, ids_a), size(n_b, ids_b), ids_a, ids_b, weights};
}

nb::object cocluster_call(nb::handle a, nb::handle b, nb::dict keywords) {
  Call call("cocluster", std::move(keywords));
  const auto options = call.options(cocluster_fields());
  auto result = std::make_shared<Cocluster>();
  if (b.is_none()) {
    call.refuse_others();
    const Input relation = call.host_table("a", a);
    call.run([&](const Context& ctx) { *result = cocluster(ctx, relation.view, options); });
  } else {
    const BipartiteEdges edges = edges_of(call, a, b);
    call.run([&](const Context& ctx) { *result = cocluster(ctx, edges, options); });
  }
  nb::list relations;
  for (const CoclusterGroup& group : result->groups) {
    const std::string_view text = name_of(group.relation());
    relations.append(nb::str(text.data(), text.size()));
  }
  nb::dict plan;
  plan["method"] = std::string(name_of(result->plan.method)).c_str();
  plan["device"] = result->plan.device.c_str();
  plan["threads"] = result->plan.threads;
  plan["memory"] = result->plan.memory;
  plan["device_memory"] = result->plan.device_memory;
  return Answer(call, std::shared_ptr<const Cocluster>(result))
      .array("labels_a", result->labels_a)
      .array("labels_b", result->labels_b)
      .column("group_labels", result->groups, &CoclusterGroup::label)
      .column("counts_a", result->groups, &CoclusterGroup::count_a)
      .column("counts_b", result->groups, &CoclusterGroup::count_b)
      .value("relations", relations)
      .value("plan", plan)
      .done();
}

nb::object spectral_call(nb::handle a, nb::handle b, nb::dict keywords) {
  Call call("spectral_cocluster", std::move(keywords));
  const auto options = call.options(spectral_fields());
  const BipartiteEdges edges = edges_of(call, a, b);
  auto result = std::make_shared<SpectralCocluster>();
  call.run([&](const Context& ctx) { *result = spectral_cocluster(ctx, edges, options); });
  return Answer(call, std::shared_ptr<const SpectralCocluster>(result))
      .value("clusters", result->clusters)
      .array("labels_a", result->labels_a)
      .array("labels_b", result->labels_b)
      .array("singular_values", result->singular_values)
      .value("residual", result->residual)
      .value("rounds", result->rounds)
      .done();
}

}  // namespace

void bind_coclusters(nb::module_& module) {
  module.def("cocluster", &cocluster_call, any("a"), any("b"), nb::arg("keywords"));
  module.def("spectral_cocluster", &spectral_call, any("a"), any("b"), nb::arg("keywords"));
}

}  // namespace vicinal::python

#include "answer.hpp"

namespace nb = nanobind;

namespace vicinal::python {

nb::dict dict_of(const Plan& plan) {
  nb::dict fields;
  const auto text = [](std::string_view value) { return nb::str(value.data(), value.size()); };
  fields["method"] = text(name_of(plan.method));
  fields["screens"] = text(plan.screens);
  fields["device"] = text(plan.device);
  fields["isa"] = text(plan.isa);
  fields["threads"] = plan.threads;
  fields["memory"] = plan.memory;
  fields["device_memory"] = plan.device_memory;
  fields["expected_seconds"] = plan.expected_seconds;
  fields["reason"] = text(plan.reason);
  return fields;
}

Answer& Answer::plan(const Plan& plan) {
  fields_["plan"] = dict_of(plan);
  return *this;
}

nb::dict dict_of(const SearchStats& stats) {
  nb::dict fields;
  fields["distinct_rows"] = stats.distinct_rows;
  fields["survivors"] = stats.survivors;
  fields["escalated"] = stats.escalated;
  fields["uncertified"] = stats.uncertified;
  fields["prepare_seconds"] = stats.prepare_seconds;
  fields["search_seconds"] = stats.search_seconds;
  fields["selection_seconds"] = stats.selection_seconds;
  return fields;
}

Answer& Answer::stats(const SearchStats& stats) {
  fields_["stats"] = dict_of(stats);
  return *this;
}

}  // namespace vicinal::python

// What the functions of labels and targets share.
#pragma once

#include "answer.hpp"

namespace vicinal::python {

/// One label for each row of a table, integers or texts.
Labels labels_of(Call& call, nanobind::handle value);
/// Targets [n, outputs] or [n], widened to float64.
std::vector<double> targets_of(Call& call, const Input& targets);
/// Whether all rows within a radius count, rather than the k nearest.
bool is_by_radius(Call& call);
nanobind::object classes_of(const Labels& labels);
void show(Answer& answer, const Vote& vote, const Labels& labels);
nanobind::object regression_answer(const Call& call, const std::shared_ptr<const Regression>& result);

}  // namespace vicinal::python

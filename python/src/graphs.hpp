// Neighbor graphs and indexes as answers.
#pragma once

#include <memory>

#include "answer.hpp"
#include "searched.hpp"

namespace vicinal::python {

nanobind::object graph_answer(const Call& call, std::shared_ptr<const NeighborGraph> graph);
nanobind::object index_answer(const Call& call, std::shared_ptr<const HeldIndex> held);
/// For a model from a file: throws `invalid_argument` where its columns were scaled or coded, which Python cannot do to
/// queries.
void refuse_preparation(const Preparation& preparation, const std::string& path);

}  // namespace vicinal::python

// Neighbor graphs and indexes as answers.
#pragma once

#include <memory>

#include "answer.hpp"
#include "searched.hpp"

namespace vicinal::python {

nanobind::object graph_answer(const Call& call, std::shared_ptr<const NeighborGraph> graph);
nanobind::object index_answer(const Call& call, std::shared_ptr<const HeldIndex> held);

}  // namespace vicinal::python

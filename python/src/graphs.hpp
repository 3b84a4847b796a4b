// A neighbor graph as an answer.
#pragma once

#include <memory>

#include "answer.hpp"

namespace vicinal::python {

nanobind::object graph_answer(const Call& call, std::shared_ptr<const NeighborGraph> graph);

}  // namespace vicinal::python

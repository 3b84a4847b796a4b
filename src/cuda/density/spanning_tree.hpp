// Minimum spanning trees on the device (contract clause 27).
#pragma once

#include <cstdint>

#include "cuda/base/session.hpp"
#include "plugin/abi/density.hpp"

namespace vicinal::cuda {

/// Finds the lists of a search by key of a table within itself, which stay on the device, and makes its tree of them.
void span_table(Session& session, const Host& host, const plugin::Search& search, plugin::SpanningTask& task,
                plugin::Counters& counters);
/// Bytes it takes at most, lists and their search included. Throws `over_memory` where they are not to be had.
std::uint64_t spanning_bytes(const Session& session, const plugin::Search& search, const plugin::SpanningTask& task);

}  // namespace vicinal::cuda

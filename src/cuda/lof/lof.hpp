// Outlier scores of neighborhoods on the device (contract clause 13).
#pragma once

#include "cuda/base/session.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda::lof {

/// Finds the neighborhoods where there is a search, else uploads them; fills the task's results.
void score_outliers(Session& session, const Host& host, const plugin::Search* search, plugin::Outliers& task,
                    plugin::Counters& counters);
/// Bytes of device memory it takes beyond the search. Throws `over_memory` where they are not to be had.
std::uint64_t outlier_bytes(const Session& session, const plugin::Outliers& task);

}  // namespace vicinal::cuda::lof

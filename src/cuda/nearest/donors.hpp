// The nearest donors of missing values on the device (contract clause 24).
#pragma once

#include "cuda/base/session.hpp"
#include "plugin/abi/donors.hpp"

namespace vicinal::cuda {

void find_donors(Session& session, const Host& host, const plugin::DonorSearch& task);
/// What it takes. Throws `over_memory` where the device has no room.
plugin::DonorRoom donor_bytes(const Session& session, const plugin::DonorSearch& task);

}  // namespace vicinal::cuda

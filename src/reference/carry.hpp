// The oracle of values carried from map to map, by the letter of docs/contract.md, clause 18: every feature of b looks
// at every pair. Shares no code with the library.
#pragma once

#include <cstdint>
#include <span>

#include "vicinal/carry.hpp"

namespace vicinal::reference {

CarriedNumbers carry(const Match& match, std::span<const double> values, CarryRule rule);
CarriedCodes carry_codes(const Match& match, std::span<const std::int64_t> codes);

}  // namespace vicinal::reference

// The inner loop of the closure by bits (cpu/graph/closure.cpp), compiled once for each instruction set.
#pragma once

#include <cstdint>

#include "vicinal/context.hpp"

namespace vicinal::cpu {

/// Words of a row that are made at a time; rows are as long as some of these.
inline constexpr std::int64_t kUnionWords = 8;

/// The "or" of eight words each at rows[names[i] * stride], for `count` names, to to[8]. Returns its ones.
using UniteRowsFn = std::int64_t (*)(const std::uint64_t* rows, std::int64_t stride, const std::int64_t* names,
                                     std::int64_t count, std::uint64_t* to);

/// The one for an instruction set in use (never `automatic`).
UniteRowsFn unite_rows(Isa isa);

}  // namespace vicinal::cpu

// Which instruction sets this machine has (contract clauses 4 and 9: all give the same bits; a missing one is an
// error).
#pragma once

#include <cstdint>
#include <string_view>

#include "vicinal/context.hpp"

namespace vicinal::core {

/// True when processor and operating system support every extension the kernels of `isa` are compiled for.
bool has_isa(Isa isa) noexcept;

/// Instructions beyond an instruction set that some screens use; `zen`: made by AMD.
enum class Feature : std::uint8_t { avx512_vnni, avx512_bf16, avx_vnni, zen };
bool has_feature(Feature feature) noexcept;

/// The inverse of `name_of(Isa)`. Throws `invalid_argument` listing the names there are.
Isa isa_from(std::string_view name);

/// The instruction set to use: `wanted`; for `automatic` what VICINAL_ISA names; without that the widest there is.
/// Throws `device_unavailable` naming one that is missing, `invalid_argument` for an unknown name in VICINAL_ISA.
Isa resolve_isa(Isa wanted);

}  // namespace vicinal::core

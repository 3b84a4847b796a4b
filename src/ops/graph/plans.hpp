// What groups take to be divided, and clusters to be found, for plans made before the edges are read.
#pragma once

#include <cstdint>

#include "vicinal/spectral_cocluster.hpp"

namespace vicinal::ops {

/// Bytes of `split_groups` where one group may have all edges.
VICINAL_API std::uint64_t split_bytes(const BipartiteEdges& edges) noexcept;

/// Bytes of `spectral_cocluster`.
VICINAL_API std::uint64_t spectral_bytes(const BipartiteEdges& edges, const SpectralOptions& options) noexcept;

}  // namespace vicinal::ops

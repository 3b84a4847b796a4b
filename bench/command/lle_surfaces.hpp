// The surfaces on which Li, Yan and Zhang 2021 measure embeddings: three columns, put into 32 by an isometry, so that
// distances, and with them the embedding, are those of the surface.
#pragma once

#include <cstdint>
#include <vector>

#include "vicinal/generate.hpp"

namespace vicinal::cli {

inline constexpr std::int64_t kPaperNeighbors = 9;
inline constexpr std::int64_t kPaperColumns = 32;
/// The fewest rows; the others are doublings.
inline constexpr std::int64_t kPaperRows = 1024;

struct PaperSurface {
  Generated made;            ///< three columns, and the parameters
  std::vector<double> rows;  ///< [n, 32]
};

PaperSurface paper_surface(const Context& ctx, Shape shape, std::int64_t n);

}  // namespace vicinal::cli

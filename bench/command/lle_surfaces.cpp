// See lle_surfaces.hpp. The isometry is three of Householder's reflections.
#include "command/lle_surfaces.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal::cli {

PaperSurface paper_surface(const Context& ctx, Shape shape, std::int64_t n) {
  PaperSurface surface;
  surface.made = generate(ctx, {.shape = shape, .rows = n, .seed = 1});
  surface.rows.resize(static_cast<std::size_t>(n * kPaperColumns), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    double* const row = &surface.rows[i * kPaperColumns];
    std::copy_n(&surface.made.points[i * 3], 3, row);
    for (int reflection = 0; reflection < 3; ++reflection) {
      double dot = 0;
      double square = 0;
      const auto entry = [&](std::int64_t c) { return std::cos(static_cast<double>((reflection + 1) * (c + 1))); };
      for (std::int64_t c = 0; c < kPaperColumns; ++c) {
        dot += entry(c) * row[c];
        square += entry(c) * entry(c);
      }
      for (std::int64_t c = 0; c < kPaperColumns; ++c) row[c] -= 2 * dot / square * entry(c);
    }
  }
  return surface;
}

}  // namespace vicinal::cli

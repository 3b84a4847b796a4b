// Unrolls a Swiss roll by modified locally linear embedding, and compares the result with the true coordinates.
#include <cstdio>

#include "vicinal/vicinal.hpp"

namespace vc = vicinal;

int main() {
  const vc::Context ctx = vc::Context::cpu();
  const std::int64_t n = 1500;
  const vc::Generated made = vc::generate(ctx, {.shape = vc::Shape::swiss_roll, .rows = n, .seed = 1});
  const vc::TableView rows(made.points.data(), n, 3);
  const vc::Lle found = vc::lle(ctx, rows, {.k = 12, .dim = 2, .variant = vc::LleVariant::modified});
  const vc::LleParameterFit fit = vc::compare_parameters(ctx, found, {made.parameters.data(), n, 2});
  const vc::LleQuality quality = vc::lle_quality(ctx, rows, found);
  std::printf("trustworthiness %.4f, continuity %.4f, unexplained variance of the true coordinates %.1e\n",
              quality.trustworthiness, quality.continuity, fit.affine);
  return found.pieces.size() == 1 && fit.affine < 0.01 ? 0 : 1;
}

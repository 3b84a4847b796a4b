// See projection.hpp.
#include "report/projection.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "report/html.hpp"
#include "vicinal/pca.hpp"

namespace vicinal::cli::report {
namespace {

/// Rows [m, cols] on the model's components; one component is the axis of x.
std::vector<Point> points_of(const Context& ctx, const Pca& model, std::span<const double> rows) {
  std::vector<Point> points;
  if (rows.empty()) return points;
  const auto count = static_cast<std::int64_t>(rows.size()) / model.cols;
  const std::vector<double> places = transform(ctx, model, TableView(rows.data(), count, model.cols));
  const auto width = static_cast<std::size_t>(model.components);
  for (std::size_t i = 0; i < places.size(); i += width) {
    const auto at = [&](std::size_t c) { return model.scale > 0 && c < width ? places[i + c] / model.scale : 0; };
    points.push_back({at(0), at(1)});
  }
  return points;
}

}  // namespace

Corners corners_of(const Projection& projection) {
  Corners all = {projection.rows[0], projection.rows[0]};
  for (const auto* points : {&projection.rows, &projection.centres}) {
    for (const Point& point : *points) {
      all.low = {std::min(all.low.x, point.x), std::min(all.low.y, point.y)};
      all.high = {std::max(all.high.x, point.x), std::max(all.high.y, point.y)};
    }
  }
  return all;
}

Projection project(const Context& ctx, const TableSample& sample, std::span<const double> centres) {
  const Pca model = pca(ctx, sample.view(), {.components = std::min<std::int64_t>(2, sample.cols)});
  Projection projection;
  projection.rows = points_of(ctx, model, sample.values);
  projection.centres = points_of(ctx, model, centres);
  std::copy(model.explained_variance_ratio.begin(), model.explained_variance_ratio.end(), projection.share);
  return projection;
}

std::string sampled_text(const TableSample& sample, const TableView& table) {
  if (sample.size() == table.rows()) return "All rows";
  return fmt::format("{} of {} rows", count_text(sample.size()), count_text(table.rows()));
}

std::string projected_text(const Projection& projection, const TableView& table) {
  if (table.cols() == 1) return "along their one column";
  return fmt::format("on the two principal components, which have {:.0f}\u202f% and {:.0f}\u202f% of the variance",
                     100 * projection.share[0], 100 * projection.share[1]);
}

std::uint64_t projection_bytes(const TableView& table) {
  const auto rows = static_cast<std::uint64_t>(std::min(table.rows(), kSampleRows));
  const auto cols = static_cast<std::uint64_t>(table.cols());
  constexpr std::uint64_t kRow = 128;      // number, draw and places
  constexpr std::uint64_t kVectors = 32;   // that pca iterates on, and what is made of them
  constexpr std::uint64_t kCentres = 256;  // or outlying rows, and as they are read
  return rows * (2 * cols * sizeof(double) + kRow) + (kVectors + kCentres) * cols * sizeof(double);
}

}  // namespace vicinal::cli::report

// See papers_lle_plots.hpp.
#include "command/papers_lle_plots.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "command/lle_surfaces.hpp"
#include "report/drawing.hpp"
#include "report/html.hpp"
#include "vicinal/io.hpp"
#include "vicinal/lle.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kDotsDrawn = 1000;  // of a panel
constexpr int kShades = 24;
constexpr std::string_view kHost = "cpu";
constexpr Shape kSurfaces[] = {Shape::swiss_roll, Shape::s_curve};

std::string spoken(Shape shape) {
  return shape == Shape::swiss_roll ? "Swiss roll" : "S curve";
}

std::string spoken_device(const std::string& device) {
  return device == kHost ? "CPU" : "GPU";
}

std::string color_of(Shape shape) {
  return report::kind_color(shape == Shape::swiss_roll ? 0 : 1);
}

/// Values by rows, of each surface and device.
using Measured = std::map<std::pair<std::string, std::string>, std::map<std::int64_t, double>>;

Measured measured_of(const Json& lines, bool krylov) {
  Measured found;
  for (const Json& line : lines) {
    found[{line["surface"], line["device"]}][line["rows"]] =
        krylov ? line["krylov_seconds"].get<double>() : line["seconds"]["median"].get<double>();
  }
  return found;
}

std::vector<report::Line> ratio_lines(const Json& lines) {
  const Measured found = measured_of(lines, false);
  std::vector<report::Line> made;
  for (const Shape shape : kSurfaces) {
    const auto host = found.find({std::string(name_of(shape)), std::string(kHost)});
    for (const auto& [key, seconds] : found) {
      if (host == found.end() || key.first != name_of(shape) || key.second == kHost) continue;
      report::Line line{spoken(shape), color_of(shape), false, {}};
      for (const auto& [rows, value] : seconds) {
        const auto other = host->second.find(rows);
        if (other != host->second.end()) line.points.push_back({static_cast<double>(rows), other->second / value});
      }
      if (!line.points.empty()) made.push_back(line);
    }
  }
  return made;
}

std::vector<report::Line> krylov_lines(const Json& lines) {
  std::vector<report::Line> made;
  for (const auto& [key, seconds] : measured_of(lines, true)) {
    const Shape shape = shape_from(key.first);
    report::Line line{spoken(shape) + ", " + spoken_device(key.second), color_of(shape), key.second == kHost, {}};
    for (const auto& [rows, value] : seconds) line.points.push_back({static_cast<double>(rows), value});
    made.push_back(line);
  }
  return made;
}

/// The rows drawn, spread evenly, and a color for the angle along the surface of each.
class Sample {
 public:
  explicit Sample(const Generated& made) {
    const std::int64_t count = std::min(made.rows, kDotsDrawn);
    double low = made.parameters[0];
    double high = low;
    for (std::int64_t i = 0; i < made.rows; ++i) {
      low = std::min(low, made.parameters[i * 2]);
      high = std::max(high, made.parameters[i * 2]);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      rows_.push_back(made.rows * i / count);
      const double share = high > low ? (made.parameters[rows_.back() * 2] - low) / (high - low) : 0;
      const auto shade = std::min(static_cast<int>(share * kShades), kShades - 1);
      colors_.push_back(report::ramp_color(static_cast<double>(shade) / (kShades - 1)));
    }
  }

  /// place(row) has x, y and depth.
  template <class Place>
  [[nodiscard]] std::vector<report::Dot> dots(const Place& place) const {
    std::vector<report::Dot> made;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      made.push_back(place(rows_[i]));
      made.back().color = colors_[i];
    }
    return made;
  }

 private:
  std::vector<std::int64_t> rows_;
  std::vector<std::string> colors_;
};

report::Drawing embeddings(const Context& ctx, Shape shape, std::int64_t most_rows) {
  std::vector<report::Panel> panels;
  for (std::int64_t n = std::min(kPaperRows, most_rows); n <= most_rows; n *= 4) {
    const PaperSurface surface = paper_surface(ctx, shape, n);
    const Sample sample(surface.made);
    if (panels.empty()) {
      // Seen along the roll, from a little above and to the left.
      const auto view = [&](std::int64_t i) {
        const double* const x = &surface.made.points[i * 3];
        return report::Dot{x[0] + 0.35 * x[1], x[2] + 0.25 * x[1], -x[1], {}};
      };
      panels.push_back({fmt::format("{}, {} rows", spoken(shape), report::count_text(n)), sample.dots(view)});
    }
    const TableView table(surface.rows.data(), n, kPaperColumns);
    const Lle found = lle(ctx, table, {.k = std::min(kPaperNeighbors, n - 1)});
    const auto place = [&](std::int64_t i) {
      return report::Dot{found.embedding[i * 2], found.embedding[i * 2 + 1], 0, {}};
    };
    panels.push_back({fmt::format("embedding of {}", report::count_text(n)), sample.dots(place)});
  }
  return report::draw_panels(panels, spoken(shape) + " and its embeddings, colored by the angle along the surface");
}

}  // namespace

Json read_lle_lines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::io, fmt::format("--from: cannot open {}", path.string()));
  const Json result = Json::parse(file, nullptr, false);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::bad_data,
                fmt::format("--from: {} is no result of bench papers lle: {}", path.string(), why));
  };
  if (result.is_discarded()) refuse("it is no JSON");
  Json lines = result.is_object() ? result.value("/tables/0/lines"_json_pointer, Json()) : Json();
  if (!lines.is_array() || lines.empty()) refuse("it has no lines of embeddings");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json& line = lines[i];
    const auto positive = [&](const char* pointer) {
      const Json value = line.is_object() ? line.value(Json::json_pointer(pointer), Json()) : Json();
      return value.is_number() && value.get<double>() > 0;
    };
    const bool named = line.is_object() && line.value("device", Json()).is_string() &&
                       (line.value("surface", Json()) == name_of(Shape::swiss_roll) ||
                        line.value("surface", Json()) == name_of(Shape::s_curve));
    if (!named || !positive("/rows") || !positive("/seconds/median") || !positive("/krylov_seconds")) {
      refuse(fmt::format("line {} lacks its surface, rows, device or seconds", i));
    }
  }
  return lines;
}

std::vector<NamedDrawing> lle_paper_drawings(const Context& ctx, const Json& lines, std::int64_t most_rows) {
  std::vector<NamedDrawing> made;
  const std::vector<report::Line> ratios = ratio_lines(lines);
  if (!ratios.empty()) {
    made.push_back(
        {"lle-ratio", report::draw_lines(ratios, "how many times longer the CPU takes than the GPU", "rows")});
  }
  made.push_back({"lle-krylov", report::draw_lines(krylov_lines(lines), "seconds of the Krylov part", "rows")});
  made.push_back({"lle-swiss-roll", embeddings(ctx, Shape::swiss_roll, most_rows)});
  made.push_back({"lle-s-curve", embeddings(ctx, Shape::s_curve, most_rows)});
  return made;
}

void draw_lle_paper(const Context& ctx, const Json& lines, std::int64_t most_rows,
                    const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCode::io, fmt::format("--svg: cannot make the folder {}: {}", folder.string(), error.message()));
  }
  for (const NamedDrawing& one : lle_paper_drawings(ctx, lines, most_rows)) {
    write_text(folder / (one.name + ".svg"), report::svg_file(one.drawing));
  }
}

}  // namespace vicinal::cli

// See map.hpp. The map is one drawing of 8,000 units across, so that it can be looked at closely: buttons without a
// script make it two, four and eight times as wide as its frame. Points closer than three units are left out.
#include "report/map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/interrupt.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr double kAcross = 8000;
constexpr std::int64_t kFeaturesNamed = 6000;  // with more, shapes of a kind are one path
constexpr std::size_t kPairsShown = 12;
constexpr int kChanges = static_cast<int>(Change::complex) + 1;

struct Frame {
  double x = 0;
  double y = 0;  ///< of the upper left corner
  double width = 0;
  double height = 0;
  double scale = 1;
};

struct Extent {
  double x0 = HUGE_VAL;
  double y0 = HUGE_VAL;
  double x1 = -HUGE_VAL;
  double y1 = -HUGE_VAL;

  void add(const PolygonsView& polygons, std::int64_t first, std::int64_t last) {
    const auto at = [](std::span<const std::int64_t> list, std::int64_t i) {
      return list[static_cast<std::size_t>(i)];
    };
    for (std::int64_t p = at(polygons.rings, at(polygons.parts, at(polygons.features, first)));
         p < at(polygons.rings, at(polygons.parts, at(polygons.features, last))); ++p) {
      x0 = std::min(x0, polygons.points[static_cast<std::size_t>(2 * p)]);
      x1 = std::max(x1, polygons.points[static_cast<std::size_t>(2 * p)]);
      y0 = std::min(y0, polygons.points[static_cast<std::size_t>(2 * p) + 1]);
      y1 = std::max(y1, polygons.points[static_cast<std::size_t>(2 * p) + 1]);
    }
  }
  [[nodiscard]] Frame frame(double across) const {
    if (!(x0 <= x1)) return {0, 0, across, across, 1};
    const double size = std::max({x1 - x0, y1 - y0, 1e-300});
    const double scale = across / size;
    return {x0, y1, std::max(1.0, (x1 - x0) * scale), std::max(1.0, (y1 - y0) * scale), scale};
  }
};

/// The feature's rings as SVG path data, in whole units of the frame; empty for one too small to be seen.
std::string path_of(const PolygonsView& polygons, std::int64_t feature, const Frame& frame) {
  std::string text;
  const auto at = [](std::span<const std::int64_t> list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; };
  for (std::int64_t ring = at(polygons.parts, at(polygons.features, feature));
       ring < at(polygons.parts, at(polygons.features, feature + 1)); ++ring) {
    const std::size_t begin = text.size();
    std::int64_t last_x = 0;
    std::int64_t last_y = 0;
    int points = 0;
    for (std::int64_t p = at(polygons.rings, ring); p < at(polygons.rings, ring + 1); ++p) {
      const double* const xy = polygons.points.data() + 2 * p;
      const std::int64_t x = std::llround((xy[0] - frame.x) * frame.scale);
      const std::int64_t y = std::llround((frame.y - xy[1]) * frame.scale);
      if (points == 0) {
        fmt::format_to(std::back_inserter(text), "M{} {}", x, y);
      } else if (std::llabs(x - last_x) + std::llabs(y - last_y) < 3) {
        continue;
      } else {
        fmt::format_to(std::back_inserter(text), "l{} {}", x - last_x, y - last_y);
      }
      last_x = x;
      last_y = y;
      ++points;
    }
    if (points < 3) {
      text.resize(begin);
    } else {
      text += 'z';
    }
  }
  return text;
}

Change change_of(const Match& match, const MatchFeature& feature) {
  return match.groups[static_cast<std::size_t>(feature.group)].change;
}

std::string class_of(Change change) {
  return fmt::format("c-{}", name_of(change));
}

std::string header(const MatchedFiles& files) {
  const auto name = [](const std::string& path) { return escape(std::filesystem::path(path).filename().string()); };
  return fmt::format(
      "<header><p class=\"over\">Match of two maps</p><h1>{} and {}</h1><p>{} and {} features</p></header>\n",
      name(files.path_a), name(files.path_b), format_count(files.layers->a.polygons.size()),
      format_count(files.layers->b.polygons.size()));
}

std::string hero(const MatchedFiles& files, double seconds) {
  const Match& match = *files.match;
  const std::vector<std::int64_t> counts = count_changes(match);
  const auto of = [&counts](Change change) { return counts[static_cast<std::size_t>(change)]; };
  const std::int64_t matched =
      static_cast<std::int64_t>(match.groups.size()) - of(Change::created) - of(Change::removed);
  std::string text = fmt::format(
      "<div class=\"hero\"><div class=\"figure\"><div class=\"big\">{}</div><span>groups that "
      "correspond</span></div>\n",
      format_count(matched));
  text += figure(format_count(count_kept(match)), "pairs kept");
  text += figure(format_count(of(Change::removed)), "without a partner in the new map");
  text += figure(format_count(of(Change::created)), "without one in the old map");
  return text + figure(escape(format_duration(seconds)), "from files to answer") + "</div>\n";
}

std::string facts(const MatchedFiles& files) {
  const MatchOptions& options = files.match->options;
  std::string text = "<dl class=\"facts\">\n" + fact("Old", files.path_a) + fact("New", files.path_b);
  text += fact("Rule", fmt::format("{}, threshold {}{}", name_of(options.rule), options.threshold,
                                   options.min_width > 0 ? fmt::format(", width {} m", options.min_width) : ""));
  text += fact("Coordinates", fmt::format("{} and {}", files.layers->a.crs, files.layers->b.crs));
  text += fact("Repaired", fmt::format("{} and {} features",
                                       format_count(static_cast<std::int64_t>(files.layers->a.repaired.size())),
                                       format_count(static_cast<std::int64_t>(files.layers->b.repaired.size()))));
  text += fact("Areas in", files.layers->projection, true);
  return text + fact("Version", fmt::format("vicinal {}, {}", VICINAL_VERSION, files.layers->versions), true) +
         "</dl>\n";
}

std::string key(const Match& match) {
  std::string text = "<p class=\"key\">";
  const std::vector<std::int64_t> counts = count_changes(match);
  for (int c = 0; c < kChanges; ++c) {
    const auto change = static_cast<Change>(c);
    text += fmt::format("<span><i class=\"{}\"></i>{} {}</span>", class_of(change), name_of(change),
                        format_count(counts[static_cast<std::size_t>(c)]));
  }
  return text + "</p>\n";
}

/// The new map's features, and of the old one those that are gone; then the old borders of whatever is not unchanged.
std::string map_section(const MatchedFiles& files) {
  const Match& match = *files.match;
  const PolygonsView a = files.layers->a.polygons.view();
  const PolygonsView b = files.layers->b.polygons.view();
  Extent extent;
  extent.add(a, 0, a.size());
  extent.add(b, 0, b.size());
  const Frame frame = extent.frame(kAcross);
  const bool named = a.size() + b.size() <= kFeaturesNamed;
  std::array<std::string, kChanges> fills;
  std::string old_borders;
  const auto fill = [&](const PolygonsView& layer, std::int64_t i, const MatchFeature& feature, const std::string& id) {
    const std::string path = path_of(layer, i, frame);
    if (path.empty()) return;
    const Change change = change_of(match, feature);
    std::string& to = fills[static_cast<std::size_t>(change)];
    if (named) {
      fmt::format_to(std::back_inserter(to), "<path d=\"{}\"><title>{}: {}, group {}</title></path>", path,
                     escape(shortened(id, 40)), name_of(change), feature.group);
    } else {
      to += path;
    }
  };
  for (std::int64_t j = 0; j < b.size(); ++j) {
    fill(b, j, match.b[static_cast<std::size_t>(j)], label_of(files.layers->b, j));
  }
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const MatchFeature& feature = match.a[static_cast<std::size_t>(i)];
    const Change change = change_of(match, feature);
    if (change == Change::removed) fill(a, i, feature, label_of(files.layers->a, i));
    if (change != Change::unchanged) old_borders += path_of(a, i, frame);
  }
  std::string shapes;
  for (int c = 0; c < kChanges; ++c) {
    const std::string& d = fills[static_cast<std::size_t>(c)];
    if (d.empty()) continue;
    const std::string style = class_of(static_cast<Change>(c));
    shapes += named ? fmt::format("<g class=\"{}\">{}</g>\n", style, d)
                    : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, d);
  }
  shapes += fmt::format("<path class=\"old\" d=\"{}\"/>", old_borders);
  std::string text =
      "<section class=\"atlas\"><h2>What became of each feature</h2><p class=\"note\">The new map by what happened to "
      "it, "
      "borders of the old one dashed where something did.";
  text += named ? " Point at a feature for its name." : "";
  text += "</p>\n" + key(match);
  for (const int zoom : {1, 2, 4, 8}) {
    text += fmt::format("<input type=\"radio\" name=\"zoom\" id=\"z{0}\"{1}><label for=\"z{0}\">{0}×</label>", zoom,
                        zoom == 1 ? " checked" : "");
  }
  text += fmt::format(
      "<div class=\"view\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"Both maps, coloured by "
      "change\" "
      "fill-rule=\"evenodd\">\n{}</svg></div></section>\n",
      frame.width, frame.height, shapes);
  return text;
}

std::string card(const MatchedFiles& files, const MatchPair& pair) {
  const PolygonsView a = files.layers->a.polygons.view();
  const PolygonsView b = files.layers->b.polygons.view();
  Extent extent;
  extent.add(a, pair.overlap.a, pair.overlap.a + 1);
  extent.add(b, pair.overlap.b, pair.overlap.b + 1);
  Frame frame = extent.frame(600);
  const std::string shapes = fmt::format("<path class=\"first\" d=\"{}\"/><path class=\"second\" d=\"{}\"/>",
                                         path_of(a, pair.overlap.a, frame), path_of(b, pair.overlap.b, frame));
  const auto name = [](const PolygonLayer& layer, std::int64_t at) {
    return escape(shortened(label_of(layer, at), 32));
  };
  return fmt::format(
      "<div class=\"card pairing\"><svg viewBox=\"-20 -20 {:.0f} {:.0f}\" role=\"img\" aria-label=\"a pair\" "
      "fill-rule=\"evenodd\">{}</svg><p><strong>{} · {}</strong>{}: {:.2g} % of the old one, {:.2g} % of the new one, "
      "{} m wide</p></div>\n",
      frame.width + 40, frame.height + 40, shapes, name(files.layers->a, pair.overlap.a),
      name(files.layers->b, pair.overlap.b), pair.kept ? "kept" : "not kept", 100 * pair.share_a, 100 * pair.share_b,
      short_number(pair.overlap.width, 3));
}

/// Those that share most area first: a mistake there matters most.
std::string doubtful_section(const MatchedFiles& files) {
  std::vector<const MatchPair*> doubtful;
  for (const MatchPair& pair : files.match->pairs) {
    if (pair.doubtful) doubtful.push_back(&pair);
  }
  if (doubtful.empty()) return {};
  std::stable_sort(doubtful.begin(), doubtful.end(), [](const MatchPair* x, const MatchPair* y) {
    poll_interrupt();
    return x->overlap.area > y->overlap.area;
  });
  const std::size_t shown = std::min(doubtful.size(), kPairsShown);
  std::string text = fmt::format(
      "<section><h2>Worth a look</h2><p class=\"note\">{} pairs are within a factor of two of what decides; the {} "
      "that "
      "share most. The old feature is dashed.</p>\n<div class=\"cards\">\n",
      format_count(static_cast<std::int64_t>(doubtful.size())), shown);
  for (std::size_t i = 0; i < shown; ++i) text += card(files, *doubtful[i]);
  return text + "</div>\n</section>\n";
}

}  // namespace

std::string render_map(const MatchedFiles& files, double seconds) {
  std::string body = header(files) + hero(files, seconds) + facts(files) + map_section(files) + doubtful_section(files);
  body += footer("Areas are those of the polygons' own coordinates, whatever their borders touch.");
  return page("Match of " + std::filesystem::path(files.path_a).filename().string() + " and " +
                  std::filesystem::path(files.path_b).filename().string(),
              body);
}

}  // namespace vicinal::cli::report

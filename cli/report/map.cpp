// See map.hpp. The map is one drawing of 8,000 units across, so that it can be looked at closely: by the page's script,
// or where scripts do not run by buttons that make it two, four and eight times as wide as its frame.
#include "report/map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "base/interrupt.hpp"
#include "report/facts.hpp"
#include "report/html.hpp"
#include "report/map_layout.hpp"
#include "report/map_script.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {
namespace {

constexpr double kAcross = 8000;
constexpr double kMapMargin = 40;
constexpr std::int64_t kFeaturesNamed = 20000;  // with more, shapes of a kind are one path
constexpr std::size_t kPairsDrawn = 12;
constexpr std::size_t kMostListed = 10000;
constexpr std::size_t kNamesListed = 8;
constexpr int kChanges = static_cast<int>(Change::complex) + 1;

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
      name(files.path_a), name(files.path_b), count_text(files.layers->a.polygons.size()),
      count_text(files.layers->b.polygons.size()));
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
      count_text(matched));
  text += figure(count_text(count_kept(match)), "pairs kept");
  text += figure(count_text(of(Change::removed)), "without a partner in the new map");
  text += figure(count_text(of(Change::created)), "without one in the old map");
  return text + figure(escape(format_duration(seconds)), "from files to answer") + "</div>\n";
}

std::string facts(const MatchedFiles& files) {
  const MatchOptions& options = files.match->options;
  std::string text = "<dl class=\"facts\">\n" + fact("Old", files.path_a) + fact("New", files.path_b);
  text += fact("Rule", fmt::format("{}, threshold {}{}", name_of(options.rule), options.threshold,
                                   options.min_width > 0 ? fmt::format(", width {} m", options.min_width) : ""));
  text += fact("Coordinates", fmt::format("{} and {}", files.layers->a.crs, files.layers->b.crs));
  text += fact("Repaired",
               fmt::format("{} and {} features", count_text(static_cast<std::int64_t>(files.layers->a.repaired.size())),
                           count_text(static_cast<std::int64_t>(files.layers->b.repaired.size()))));
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
                        count_text(counts[static_cast<std::size_t>(c)]));
  }
  return text + "</p>\n";
}

/// The new map's features, and of the old one those that are gone; then the old borders of whatever is not unchanged.
std::string map_section(const MatchedFiles& files, const MapLayout& layout) {
  const Match& match = *files.match;
  const PolygonsView a = files.layers->a.polygons.view();
  const PolygonsView b = files.layers->b.polygons.view();
  const bool named = a.size() + b.size() <= kFeaturesNamed;
  std::array<std::string, kChanges> fills;
  std::string old_borders;
  const auto fill = [&](const PolygonLayer& layer, std::int64_t i, const MatchFeature& feature) {
    const std::string path = layout.path(layer.polygons.view(), i);
    if (path.empty()) return;
    const Change change = change_of(match, feature);
    std::string& to = fills[static_cast<std::size_t>(change)];
    if (named) {
      fmt::format_to(std::back_inserter(to), "<path d=\"{}\"><title>{}: {}, group {}</title></path>", path,
                     escape(shortened(label_of(layer, i), 60)), name_of(change), feature.group);
    } else {
      to += path;
    }
  };
  for (std::int64_t j = 0; j < b.size(); ++j) fill(files.layers->b, j, match.b[static_cast<std::size_t>(j)]);
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const MatchFeature& feature = match.a[static_cast<std::size_t>(i)];
    const Change change = change_of(match, feature);
    if (change == Change::removed) fill(files.layers->a, i, feature);
    if (change != Change::unchanged) old_borders += layout.path(a, i);
  }
  std::string shapes;
  for (std::size_t f = 1; f < layout.frames().size(); ++f) {
    const MapFrame& inset = layout.frames()[f];
    constexpr double kMargin = 60;
    shapes +=
        fmt::format("<rect class=\"inset\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"40\"/>\n",
                    inset.left - kMargin, inset.top - kMargin, inset.width + 2 * kMargin, inset.height + 2 * kMargin);
  }
  for (int c = 0; c < kChanges; ++c) {
    const std::string& d = fills[static_cast<std::size_t>(c)];
    if (d.empty()) continue;
    const std::string style = class_of(static_cast<Change>(c));
    shapes += named ? fmt::format("<g class=\"{}\">{}</g>\n", style, d)
                    : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, d);
  }
  shapes += fmt::format("<path class=\"old\" d=\"{}\"/><rect class=\"mark\"/>", old_borders);
  std::string text =
      "<section class=\"atlas\"><h2>What became of each feature</h2><p class=\"note\">The new map by what happened to "
      "it, borders of the old one dashed where something did.";
  if (named) text += " Point at a feature for its name.";
  if (layout.frames().size() > 1) text += " Parts that lie far away are in frames below, each in a scale of its own.";
  text += "</p>\n" + key(match);
  for (const int zoom : {1, 2, 4, 8}) {
    text += fmt::format("<input type=\"radio\" name=\"zoom\" id=\"z{0}\"{1}><label for=\"z{0}\">{0}×</label>", zoom,
                        zoom == 1 ? " checked" : "");
  }
  text +=
      "<p class=\"tools\"><button type=\"button\" data-zoom=\"2\" aria-label=\"closer\">+</button><button "
      "type=\"button\" data-zoom=\"0.5\" aria-label=\"farther\">−</button><button type=\"button\" "
      "data-zoom=\"0\">whole map</button> Wheel, two fingers or + and − zoom, dragging or arrows move, 0 shows "
      "all.</p>\n";
  text += fmt::format(
      "<div class=\"view\" tabindex=\"0\" role=\"group\" aria-label=\"Map: plus and minus zoom, arrows move, 0 shows "
      "all\"><svg viewBox=\"{:.0f} {:.0f} {:.0f} {:.0f}\" role=\"img\" aria-label=\"Both maps, colored by change\" "
      "fill-rule=\"evenodd\">\n{}</svg><div class=\"tip\" hidden></div></div></section>\n",
      -kMapMargin, -kMapMargin, layout.width() + 2 * kMapMargin, layout.height() + 2 * kMapMargin, shapes);
  return text;
}

/// `data-box` of a list's item: where the map shows the features.
std::string box_of(const MapLayout& layout, std::span<const MapMember> members) {
  const std::optional<Box> box = layout.place(members);
  if (!box) return {};
  return fmt::format(" data-box=\"{:.0f} {:.0f} {:.0f} {:.0f}\"", box->x0, box->y0, box->width(), box->height());
}

/// A list with a field to search it; `shown` of `count` are in it.
std::string list_of(const std::string& name, const std::string& items, std::size_t shown, std::size_t count) {
  std::string text = fmt::format(
      "<div class=\"changes\"><p class=\"search\"><label>Search <input type=\"search\"></label> <span "
      "role=\"status\">{}</span></p><ol aria-label=\"{}\" tabindex=\"0\">\n{}</ol></div>\n",
      count_text(static_cast<std::int64_t>(shown)), escape(name), items);
  if (shown < count) {
    text += fmt::format("<p class=\"note\">The first {} of {}; the table of pairs has all of them.</p>\n",
                        count_text(static_cast<std::int64_t>(shown)), count_text(static_cast<std::int64_t>(count)));
  }
  return text;
}

/// Groups in which something happened, by the kind of change.
std::string changes_section(const MatchedFiles& files, const MapLayout& layout) {
  const Match& match = *files.match;
  const PolygonsView views[] = {files.layers->a.polygons.view(), files.layers->b.polygons.view()};
  struct Members {
    std::vector<std::int64_t> of[2];
  };
  std::vector<Members> members(match.groups.size());
  for (const int side : {0, 1}) {
    const std::vector<MatchFeature>& features = side == 0 ? match.a : match.b;
    for (std::size_t i = 0; i < features.size(); ++i) {
      members[static_cast<std::size_t>(features[i].group)].of[side].push_back(static_cast<std::int64_t>(i));
    }
  }
  std::vector<std::size_t> changed;
  for (std::size_t g = 0; g < match.groups.size(); ++g) {
    if (match.groups[g].change != Change::unchanged) changed.push_back(g);
  }
  if (changed.empty()) return {};
  std::stable_sort(changed.begin(), changed.end(), [&](std::size_t x, std::size_t y) {
    poll_interrupt();
    return match.groups[x].change < match.groups[y].change;
  });
  const std::size_t shown = std::min(changed.size(), kMostListed);
  std::string items;
  for (std::size_t i = 0; i < shown; ++i) {
    const Members& group = members[changed[i]];
    const Change change = match.groups[changed[i]].change;
    std::vector<MapMember> placed;
    std::string names[2];
    for (const int side : {0, 1}) {
      const std::vector<std::int64_t>& of = group.of[side];
      for (std::size_t m = 0; m < of.size(); ++m) {
        placed.push_back({&views[side], of[m]});
        if (m >= kNamesListed) continue;
        names[side] += (m == 0 ? "" : ", ") +
                       escape(shortened(label_of(side == 0 ? files.layers->a : files.layers->b, of[m]), 60));
      }
      if (of.size() > kNamesListed) {
        names[side] +=
            fmt::format(" and {} more", count_text(std::ssize(of) - static_cast<std::int64_t>(kNamesListed)));
      }
    }
    const char* const between = names[0].empty() || names[1].empty() ? "" : " → ";
    items += fmt::format("<li{}><i class=\"{}\"></i>{}: {}{}{}</li>\n", box_of(layout, placed), class_of(change),
                         name_of(change), names[0], between, names[1]);
  }
  return fmt::format(
             "<section><h2>What changed</h2><p class=\"note\">{} groups that are not unchanged: old features, and the "
             "new "
             "ones that they became.</p>\n",
             count_text(std::ssize(changed))) +
         list_of("What changed", items, shown, changed.size()) + "</section>\n";
}

std::string names_of(const MatchedFiles& files, const MatchPair& pair) {
  return escape(shortened(label_of(files.layers->a, pair.overlap.a), 32)) + " · " +
         escape(shortened(label_of(files.layers->b, pair.overlap.b), 32));
}

std::string shares_of(const MatchPair& pair) {
  return fmt::format("{}: {}\u202f% of the old one, {}\u202f% of the new one, {}\u202fm wide",
                     pair.kept ? "kept" : "not kept", number_text(100 * pair.share_a, 2),
                     number_text(100 * pair.share_b, 2), number_text(pair.overlap.width, 3));
}

/// The two features alone, in one frame.
std::string card(const MatchedFiles& files, const MatchPair& pair) {
  const PolygonsView a = files.layers->a.polygons.view();
  const PolygonsView b = files.layers->b.polygons.view();
  const MapMember both[] = {{&a, pair.overlap.a}, {&b, pair.overlap.b}};
  const MapLayout layout(std::span<const MapMember>(both), 600);
  return fmt::format(
      "<div class=\"card pairing\"><svg viewBox=\"-20 -20 {:.0f} {:.0f}\" role=\"img\" aria-label=\"a pair\" "
      "fill-rule=\"evenodd\"><path class=\"first\" d=\"{}\"/><path class=\"second\" "
      "d=\"{}\"/></svg><p><strong>{}</strong>{}</p></div>\n",
      layout.width() + 40, layout.height() + 40, layout.path(a, pair.overlap.a), layout.path(b, pair.overlap.b),
      names_of(files, pair), shares_of(pair));
}

/// Those that share most area first: a mistake there matters most.
std::string doubtful_section(const MatchedFiles& files, const MapLayout& layout) {
  std::vector<const MatchPair*> doubtful;
  for (const MatchPair& pair : files.match->pairs) {
    if (pair.doubtful) doubtful.push_back(&pair);
  }
  if (doubtful.empty()) return {};
  std::stable_sort(doubtful.begin(), doubtful.end(), [](const MatchPair* x, const MatchPair* y) {
    poll_interrupt();
    return x->overlap.area > y->overlap.area;
  });
  const std::size_t drawn = std::min(doubtful.size(), kPairsDrawn);
  const std::size_t shown = std::min(doubtful.size(), kMostListed);
  std::string text = fmt::format(
      "<section><h2>Worth a look</h2><p class=\"note\">{} pair{} within a factor of two of what decides, those that "
      "share most area first. The old feature is dashed.</p>\n<div class=\"cards\">\n",
      count_text(std::ssize(doubtful)), doubtful.size() == 1 ? " is" : "s are");
  for (std::size_t i = 0; i < drawn; ++i) text += card(files, *doubtful[i]);
  text += "</div>\n";
  if (drawn == doubtful.size()) return text + "</section>\n";
  const PolygonsView a = files.layers->a.polygons.view();
  const PolygonsView b = files.layers->b.polygons.view();
  std::string items;
  for (std::size_t i = 0; i < shown; ++i) {
    const MatchPair& pair = *doubtful[i];
    const MapMember both[] = {{&a, pair.overlap.a}, {&b, pair.overlap.b}};
    items += fmt::format("<li{}>{}, {}</li>\n", box_of(layout, both), names_of(files, pair), shares_of(pair));
  }
  return text + list_of("Doubtful pairs", items, shown, doubtful.size()) + "</section>\n";
}

}  // namespace

std::string render_map(const MatchedFiles& files, double seconds) {
  const PolygonsView views[] = {files.layers->a.polygons.view(), files.layers->b.polygons.view()};
  const MapLayout layout(std::span<const PolygonsView>(views), kAcross);
  std::string body = header(files) + hero(files, seconds) + facts(files) + map_section(files, layout) +
                     changes_section(files, layout) + doubtful_section(files, layout);
  body += footer("Areas are those of the polygons' own coordinates, whatever their borders touch.");
  return page("Match of " + std::filesystem::path(files.path_a).filename().string() + " and " +
                  std::filesystem::path(files.path_b).filename().string(),
              body, kMapScript);
}

}  // namespace vicinal::cli::report

// match: the rule decides which overlaps are edges; components, types and measures follow (contract clause 18).
// O(overlaps log overlaps) after the join.
#include "vicinal/match.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "backend/overlap.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "geo/box_tree.hpp"
#include "geo/join.hpp"
#include "geo/layer.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<EdgeRule>, 8> kRules = {{
    {EdgeRule::standard, "standard"},
    {EdgeRule::touch, "touch"},
    {EdgeRule::area, "area"},
    {EdgeRule::share, "share"},
    {EdgeRule::share_a, "share_a"},
    {EdgeRule::share_b, "share_b"},
    {EdgeRule::iou, "iou"},
    {EdgeRule::width, "width"},
}};

constexpr std::array<core::Named<Change>, 7> kChanges = {{
    {Change::unchanged, "unchanged"},
    {Change::modified, "modified"},
    {Change::split, "split"},
    {Change::merged, "merged"},
    {Change::created, "created"},
    {Change::removed, "removed"},
    {Change::complex, "complex"},
}};

constexpr double kMostlyInside = 0.5;  // of `standard`: a share that needs no width
constexpr double kDoubt = 2;           // a factor of what decides

[[noreturn]] void refuse(const char* option, const std::string& value, const char* domain) {
  throw Error(ErrorCode::invalid_argument, fmt::format("match: {} = {}: must be {}", option, value, domain));
}

double own_threshold(EdgeRule rule) {
  switch (rule) {
    case EdgeRule::standard:
      return 0.25;
    case EdgeRule::iou:
      return 0.5;
    default:
      return 0.05;
  }
}

MatchOptions checked(const MatchOptions& given, std::int64_t m, std::int64_t n) {
  MatchOptions options = given;
  const auto number = [](double value) { return fmt::format("{}", value); };
  if (!(options.threshold >= 0 && options.threshold <= 1)) refuse("threshold", number(options.threshold), "in [0, 1]");
  if (!(options.min_width >= 0 && std::isfinite(options.min_width))) {
    refuse("min_width", number(options.min_width), "finite and at least 0");
  }
  if (options.rule == EdgeRule::width && options.min_width == 0) refuse("min_width", "0", "above 0 for rule width");
  if (!(options.sliver_width >= 0 && std::isfinite(options.sliver_width))) {
    refuse("sliver_width", number(options.sliver_width), "finite and at least 0");
  }
  if (!(options.unchanged_iou >= 0 && options.unchanged_iou <= 1)) {
    refuse("unchanged_iou", number(options.unchanged_iou), "in [0, 1]");
  }
  if (options.max_partners < 0) refuse("max_partners", std::to_string(options.max_partners), "at least 0");
  if (!(options.max_area >= 0)) refuse("max_area", number(options.max_area), "at least 0");
  if (options.split.max_members < 0) {
    refuse("split.max_members", std::to_string(options.split.max_members), "at least 0");
  }
  if (options.split.max_steps < 0) {
    refuse("split.max_steps", std::to_string(options.split.max_steps), "at least 0");
  }
  if (options.agreement != Agreement::ignored) {
    if (static_cast<std::int64_t>(options.codes_a.size()) != m) {
      refuse("codes_a", fmt::format("{} codes", options.codes_a.size()), "one a feature of a");
    }
    if (static_cast<std::int64_t>(options.codes_b.size()) != n) {
      refuse("codes_b", fmt::format("{} codes", options.codes_b.size()), "one a feature of b");
    }
  }
  if (options.threshold == 0) options.threshold = own_threshold(options.rule);
  return options;
}

double ratio(double part, double whole) {
  return whole > 0 ? std::min(1.0, part / whole) : 0;
}

struct Verdict {
  bool kept;
  bool doubtful;
};

/// A value against its limit; doubtful within a factor of kDoubt.
Verdict against(double value, double limit) {
  return {value >= limit, value >= limit / kDoubt && value <= limit * kDoubt};
}

Verdict verdict_of(const MatchPair& pair, const MatchOptions& options) {
  const bool interiors = pair.overlap.relation != RegionRelation::touches;
  const double share = std::max(pair.share_a, pair.share_b);  // of the smaller one
  switch (options.rule) {
    case EdgeRule::touch:
      return {true, false};
    case EdgeRule::area:
      return {interiors, false};
    case EdgeRule::share:
      return against(share, options.threshold);
    case EdgeRule::share_a:
      return against(pair.share_a, options.threshold);
    case EdgeRule::share_b:
      return against(pair.share_b, options.threshold);
    case EdgeRule::iou:
      return against(pair.iou, options.threshold);
    case EdgeRule::width:
      return against(pair.overlap.width, options.min_width);
    case EdgeRule::standard:
      break;
  }
  if (share >= kMostlyInside) return {true, false};
  const Verdict by_share = against(share, options.threshold);
  if (options.min_width == 0) return by_share;
  const Verdict by_width = against(pair.overlap.width, options.min_width);
  const bool kept = by_share.kept && by_width.kept;
  return {kept, (by_share.doubtful && (by_width.kept || by_width.doubtful)) || (by_width.doubtful && by_share.kept)};
}

bool agree(const MatchPair& pair, const MatchOptions& options) {
  const std::int64_t code = options.codes_a[static_cast<std::size_t>(pair.overlap.a)];
  return code != -1 && code == options.codes_b[static_cast<std::size_t>(pair.overlap.b)];
}

void decide(MatchPair& pair, const MatchOptions& options) {
  const Verdict verdict = verdict_of(pair, options);
  pair.kept = verdict.kept;
  pair.doubtful = verdict.doubtful;
  pair.sliver = pair.overlap.width < options.sliver_width && std::min(pair.share_a, pair.share_b) < kMostlyInside;
  if (pair.sliver) pair.kept = pair.doubtful = false;
  if (options.agreement == Agreement::required && !agree(pair, options)) {
    pair.kept = pair.doubtful = false;
  } else if (options.agreement == Agreement::enough && pair.overlap.relation != RegionRelation::touches &&
             agree(pair, options)) {
    pair.kept = true;
    pair.doubtful = false;
  }
}

class Matcher {
 public:
  Matcher(const MatchOptions& options, Match& match) : options_(options), match_(match) {}

  void take(const Overlaps& found) {
    match_.candidates = found.candidates;
    match_.a.resize(found.areas_a.size());
    match_.b.resize(found.areas_b.size());
    for (std::size_t i = 0; i < match_.a.size(); ++i) match_.a[i].area = found.areas_a[i];
    for (std::size_t j = 0; j < match_.b.size(); ++j) match_.b[j].area = found.areas_b[j];
    match_.pairs.reserve(found.pairs.size());
    for (const Overlap& overlap : found.pairs) {
      const double area_a = a_of(overlap).area;
      const double area_b = b_of(overlap).area;
      MatchPair pair;
      pair.overlap = overlap;
      pair.share_a = ratio(overlap.area, area_a);
      pair.share_b = ratio(overlap.area, area_b);
      pair.iou = ratio(overlap.area, area_a + area_b - overlap.area);
      decide(pair, options_);
      match_.pairs.push_back(pair);
    }
  }

  void leave_hubs_out() {
    std::vector<std::int64_t> partners_a(match_.a.size());
    std::vector<std::int64_t> partners_b(match_.b.size());
    for (const MatchPair& pair : match_.pairs) {
      if (!pair.kept) continue;
      ++partners_a[static_cast<std::size_t>(pair.overlap.a)];
      ++partners_b[static_cast<std::size_t>(pair.overlap.b)];
    }
    const auto mark = [&](std::vector<MatchFeature>& side, const std::vector<std::int64_t>& partners) {
      for (std::size_t i = 0; i < side.size(); ++i) {
        side[i].hub = (options_.max_partners > 0 && partners[i] > options_.max_partners) ||
                      (options_.max_area > 0 && side[i].area > options_.max_area);
      }
    };
    mark(match_.a, partners_a);
    mark(match_.b, partners_b);
    for (MatchPair& pair : match_.pairs) {
      if (a_of(pair.overlap).hub || b_of(pair.overlap).hub) pair.kept = pair.doubtful = false;
    }
  }

  /// Components, and parts of those that are too large; groups are numbered by their first member.
  void group(const Context& ctx) {
    std::vector<std::int64_t> ends_a;
    std::vector<std::int64_t> ends_b;
    std::vector<double> shares;  // of the smaller
    std::vector<std::size_t> kept;
    for (std::size_t k = 0; k < match_.pairs.size(); ++k) {
      const MatchPair& pair = match_.pairs[k];
      if (!pair.kept) continue;
      ends_a.push_back(pair.overlap.a);
      ends_b.push_back(pair.overlap.b);
      shares.push_back(std::max(pair.share_a, pair.share_b));
      kept.push_back(k);
    }
    const auto m = static_cast<std::int64_t>(match_.a.size());
    const auto n = static_cast<std::int64_t>(match_.b.size());
    const BipartiteEdges edges(m, n, ends_a, ends_b, shares);
    Cocluster found = cocluster(ctx, edges);
    if (options_.split.max_members > 0 || options_.split.max_steps > 0) {
      CoclusterSplit division = split_groups(ctx, edges, found, options_.split);
      for (const std::int64_t e : division.cut_edges) {
        MatchPair& pair = match_.pairs[kept[static_cast<std::size_t>(e)]];
        pair.kept = false;
        pair.cut = true;
      }
      match_.split_groups = division.split_groups;
      found = std::move(division.parts);
    }
    std::vector<std::int64_t> number(match_.a.size() + match_.b.size());
    for (const CoclusterGroup& one : found.groups) {
      number[static_cast<std::size_t>(one.label)] = static_cast<std::int64_t>(match_.groups.size());
      MatchGroup& group = match_.groups.emplace_back();
      group.count_a = one.count_a;
      group.count_b = one.count_b;
      group.type = one.relation();
    }
    for (std::size_t i = 0; i < match_.a.size(); ++i) {
      match_.a[i].group = number[static_cast<std::size_t>(found.labels_a[i])];
      match_.groups[static_cast<std::size_t>(match_.a[i].group)].area_a += match_.a[i].area;
    }
    for (std::size_t j = 0; j < match_.b.size(); ++j) {
      match_.b[j].group = number[static_cast<std::size_t>(found.labels_b[j])];
      match_.groups[static_cast<std::size_t>(match_.b[j].group)].area_b += match_.b[j].area;
    }
  }

  void measure() {
    std::vector<std::size_t> kept;
    std::vector<double> best_a(match_.a.size(), -1);
    std::vector<double> best_b(match_.b.size(), -1);
    for (std::size_t k = 0; k < match_.pairs.size(); ++k) {
      MatchPair& pair = match_.pairs[k];
      if (!pair.kept) continue;
      kept.push_back(k);
      pair.group = a_of(pair.overlap).group;
      match_.groups[static_cast<std::size_t>(pair.group)].shared += pair.overlap.area;
      const auto better = [&](double& most, MatchFeature& feature, std::int64_t partner) {
        if (pair.overlap.area <= most) return;  // pairs come by ascending partner for each feature of either side
        most = pair.overlap.area;
        feature.best = partner;
      };
      better(best_a[static_cast<std::size_t>(pair.overlap.a)], a_of(pair.overlap), pair.overlap.b);
      better(best_b[static_cast<std::size_t>(pair.overlap.b)], b_of(pair.overlap), pair.overlap.a);
    }
    const auto share = [this](std::size_t k) { return std::max(match_.pairs[k].share_a, match_.pairs[k].share_b); };
    std::sort(kept.begin(), kept.end(),
              [&](std::size_t x, std::size_t y) { return share(x) != share(y) ? share(x) > share(y) : x < y; });
    // Kruskal's tree of largest shares: the last edge that joins two parts of a group is the weakest that it needs.
    const auto m = static_cast<std::int64_t>(match_.a.size());
    std::vector<std::int64_t> parent(match_.a.size() + match_.b.size());
    std::iota(parent.begin(), parent.end(), 0);
    for (const std::size_t k : kept) {
      const MatchPair& pair = match_.pairs[k];
      if (!unite(parent, pair.overlap.a, m + pair.overlap.b)) continue;
      match_.groups[static_cast<std::size_t>(pair.group)].coherence = share(k);
    }
    for (MatchGroup& group : match_.groups) name(group);
  }

 private:
  static std::int64_t find(std::vector<std::int64_t>& parent, std::int64_t v) {
    while (parent[static_cast<std::size_t>(v)] != v) {
      std::int64_t& up = parent[static_cast<std::size_t>(v)];
      up = parent[static_cast<std::size_t>(up)];
      v = up;
    }
    return v;
  }

  /// False where they are together already.
  static bool unite(std::vector<std::int64_t>& parent, std::int64_t u, std::int64_t v) {
    const std::int64_t first = find(parent, u);
    const std::int64_t second = find(parent, v);
    parent[static_cast<std::size_t>(std::max(first, second))] = std::min(first, second);
    return first != second;
  }

  MatchFeature& a_of(const Overlap& overlap) { return match_.a[static_cast<std::size_t>(overlap.a)]; }
  MatchFeature& b_of(const Overlap& overlap) { return match_.b[static_cast<std::size_t>(overlap.b)]; }

  void name(MatchGroup& group) const {
    group.iou = ratio(group.shared, group.area_a + group.area_b - group.shared);
    switch (group.type) {
      case Relation::one_to_one:
        group.change = group.iou >= options_.unchanged_iou ? Change::unchanged : Change::modified;
        break;
      case Relation::one_to_many:
        group.change = Change::split;
        break;
      case Relation::many_to_one:
        group.change = Change::merged;
        break;
      case Relation::many_to_many:
        group.change = Change::complex;
        break;
      case Relation::one_to_none:
        group.change = Change::removed;
        break;
      case Relation::none_to_one:
        group.change = Change::created;
        break;
    }
  }

  const MatchOptions& options_;
  Match& match_;
};

std::vector<std::int64_t> groups_of(const std::vector<MatchFeature>& features) {
  std::vector<std::int64_t> groups(features.size());
  for (std::size_t i = 0; i < features.size(); ++i) groups[i] = features[i].group;
  return groups;
}

}  // namespace

std::string_view name_of(EdgeRule rule) noexcept {
  return core::name_in(kRules, rule);
}
std::string_view name_of(Change change) noexcept {
  return core::name_in(kChanges, change);
}
EdgeRule edge_rule_from(std::string_view name) {
  return core::value_in(kRules, "rule", name);
}

std::vector<ListedChange> list_changes(const Context& ctx, const Match& match) try {
  const core::Entry entry;
  const auto kept = static_cast<std::size_t>(
      std::count_if(match.pairs.begin(), match.pairs.end(), [](const MatchPair& pair) { return pair.kept; }));
  const std::size_t most = kept + match.a.size() + match.b.size();
  core::require_memory(ctx, most * sizeof(ListedChange) + (match.groups.size() + 1) * sizeof(std::int64_t),
                       "list_changes");
  // Lines of a group stand together: kept pairs by (a, b), or the one feature that it consists of.
  std::vector<std::int64_t> next(match.groups.size() + 1, 0);
  const auto is_alone = [&match](const MatchFeature& feature) {
    const MatchGroup& group = match.groups[static_cast<std::size_t>(feature.group)];
    return group.count_a + group.count_b == 1;
  };
  const auto count = [&next](std::int64_t group) { ++next[static_cast<std::size_t>(group) + 1]; };
  for (const MatchPair& pair : match.pairs) {
    if (pair.kept) count(pair.group);
  }
  for (const auto* const side : {&match.a, &match.b}) {
    for (const MatchFeature& feature : *side) {
      if (is_alone(feature)) count(feature.group);
    }
  }
  ctx.check_cancelled();
  for (std::size_t g = 0; g < match.groups.size(); ++g) next[g + 1] += next[g];
  std::vector<ListedChange> lines(static_cast<std::size_t>(next.back()));
  const auto line_of = [&](std::int64_t group) -> ListedChange& {
    ListedChange& line = lines[static_cast<std::size_t>(next[static_cast<std::size_t>(group)]++)];
    line.group = group;
    line.change = match.groups[static_cast<std::size_t>(group)].change;
    return line;
  };
  for (const MatchPair& pair : match.pairs) {
    if (!pair.kept) continue;
    ListedChange& line = line_of(pair.group);
    line.a = pair.overlap.a;
    line.b = pair.overlap.b;
    line.area = pair.overlap.area;
    line.share_a = pair.share_a;
    line.share_b = pair.share_b;
  }
  ctx.check_cancelled();
  for (std::size_t i = 0; i < match.a.size(); ++i) {
    if (is_alone(match.a[i])) line_of(match.a[i].group).a = static_cast<std::int64_t>(i);
  }
  for (std::size_t j = 0; j < match.b.size(); ++j) {
    if (is_alone(match.b[j])) line_of(match.b[j].group).b = static_cast<std::int64_t>(j);
  }
  return lines;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Match match(const Context& ctx, const PolygonsView& a, const PolygonsView& b, const MatchOptions& given) try {
  const core::Entry entry;
  const MatchOptions options = checked(given, a.size(), b.size());
  core::require_memory(ctx,
                       geo::layer_bytes(a) + geo::layer_bytes(b) + geo::BoxTree::bytes(b.size()) +
                           static_cast<std::uint64_t>(a.size() + b.size()) * 3 * sizeof(MatchGroup),
                       "match");
  const geo::Layer first = geo::make_layer(ctx, a, "a");
  const geo::Layer second = geo::make_layer(ctx, b, "b");
  Match match;
  Matcher matcher(options, match);
  {
    const bool widths = options.widths || options.min_width > 0 || options.sliver_width > 0;
    const Overlaps found = kernels::backend_of(ctx).overlap().join(ctx, first, second, {.widths = widths});
    core::require_memory(ctx, found.pairs.size() * (sizeof(Overlap) + sizeof(MatchPair) + 2 * sizeof(std::size_t)),
                         "match");
    matcher.take(found);
  }
  matcher.leave_hubs_out();
  matcher.group(ctx);
  matcher.measure();
  for (const bool of_a : {true, false}) {
    const std::vector<char> flags =
        geo::groups_that_overlap(ctx, of_a ? first : second, groups_of(of_a ? match.a : match.b),
                                 static_cast<std::int64_t>(match.groups.size()));
    for (std::size_t g = 0; g < flags.size(); ++g) match.groups[g].overlaps_itself |= flags[g] != 0;
  }
  match.options = options;
  match.options.codes_a = {};
  match.options.codes_b = {};
  return match;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

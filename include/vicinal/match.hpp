// match: which features of two maps of the same area correspond, from one to one up to many to many.
// docs/contract.md, clause 18; docs/matching.md says which rule to take when.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/cocluster.hpp"
#include "vicinal/context.hpp"
#include "vicinal/polygons.hpp"

namespace vicinal {

/// The rule by which a pair of features is kept. Kept pairs are the edges of the graph whose components are the groups.
enum class EdgeRule : std::uint8_t {
  standard,  ///< share of the smaller feature >= 0.5, or >= `threshold` (0.25) and mean width >= `min_width` (0)
  touch,     ///< they share a point: the rule of Zhang et al., which merges a map of adjacent parcels into one group
  area,      ///< they share an area above 0
  share,     ///< share of the smaller feature >= `threshold`
  share_a,   ///< share of a's area >= `threshold`
  share_b,   ///< share of b's area >= `threshold`
  iou,       ///< intersection over union >= `threshold`
  width,     ///< mean width of the shared area >= `min_width`
};

/// The change from the features of `a` in a group to those of `b`.
enum class Change : std::uint8_t {
  unchanged,  ///< one to one, IoU >= MatchOptions::unchanged_iou
  modified,   ///< one to one, less than that
  split,      ///< one to many
  merged,     ///< many to one
  created,    ///< none to one
  removed,    ///< one to none
  complex,    ///< many to many
};

/// How equal codes in both maps affect a pair.
enum class Agreement : std::uint8_t {
  ignored,
  required,  ///< a pair is kept only if its codes are also equal
  enough,    ///< a pair with equal codes is kept if it shares any area
};

VICINAL_API std::string_view name_of(EdgeRule rule) noexcept;
VICINAL_API std::string_view name_of(Change change) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API EdgeRule edge_rule_from(std::string_view name);

struct MatchOptions {
  EdgeRule rule = EdgeRule::standard;
  double threshold = 0;     ///< in (0, 1]; 0: the rule's own (0.25 for `standard`, 0.05 for shares, 0.5 for iou)
  double min_width = 0;     ///< in units of the coordinates
  double sliver_width = 0;  ///< narrower pairs are never kept, unless they share at least half of both features; 0: off
  double unchanged_iou = 0.98;    ///< in [0, 1]
  bool widths = false;            ///< compute the widths of all pairs, also if the rule does not need them
  std::int64_t max_partners = 0;  ///< a feature with more partners is a hub, whose pairs are not kept; 0: no limit
  double max_area = 0;            ///< a feature with a larger area is a hub; 0: no limit
  Agreement agreement = Agreement::ignored;
  std::span<const std::int64_t> codes_a = {};  ///< [features of a], -1: unknown, equal to no code
  std::span<const std::int64_t> codes_b = {};  ///< [features of b]
  SplitOptions split = {};  ///< larger groups are divided where small shares of the smaller join them (`split_groups`)
};

struct MatchPair {
  Overlap overlap;
  double share_a = 0;  ///< shared area / area of a
  double share_b = 0;
  double iou = 0;
  bool kept = false;
  bool doubtful = false;    ///< the number that decides is within a factor of two of its limit
  std::int64_t group = -1;  ///< number of the group of a kept pair, else -1
  bool cut = false;         ///< the rule keeps the pair, but it connects two parts of a divided group
  bool sliver = false;      ///< narrower than MatchOptions::sliver_width, and not at least half of both features
};

struct MatchFeature {
  double area = 0;
  std::int64_t group = -1;
  std::int64_t best = -1;  ///< kept partner with the largest shared area, ties to the smaller number; -1: none
  bool hub = false;
};

struct MatchGroup {
  std::int64_t count_a = 0;
  std::int64_t count_b = 0;
  Relation type = Relation::one_to_none;
  Change change = Change::removed;
  double area_a = 0;
  double area_b = 0;
  double shared = 0;  ///< sum over kept pairs
  double iou = 0;     ///< shared / (area_a + area_b - shared)
  /// The smallest share of the smaller feature on an edge of the group's best spanning tree; 1 without edges.
  double coherence = 1;
  bool overlaps_itself = false;  ///< two features of one map share area, so sums count this area twice
};

struct Match {
  std::vector<MatchPair> pairs;  ///< by (a, b): all pairs that share a point
  std::vector<MatchFeature> a;
  std::vector<MatchFeature> b;
  std::vector<MatchGroup> groups;  ///< by first member; members of a before those of b
  std::int64_t candidates = 0;     ///< pairs whose boxes meet
  std::int64_t split_groups = 0;   ///< groups that were divided
  MatchOptions options;            ///< as used: with the default threshold filled in, without codes
};

/// Finds the overlaps of two layers, applies the rule to each pair, and groups features by the connected components of
/// the kept pairs, split if they exceed the limits. Every feature is in exactly one group. The same result for every
/// thread count and device. Throws `invalid_argument` naming the option that is out of range and for offsets that do
/// not fit, `bad_data` for coordinates that are neither 0 nor of a magnitude from 1e-120 to 1e140, `over_memory` before
/// pairs are made, `cancelled`. Cost of `overlaps`, and O(pairs log features).
VICINAL_API Match match(const Context& ctx, const PolygonsView& a, const PolygonsView& b,
                        const MatchOptions& options = {});

/// A kept pair, or a feature without a kept pair.
struct ListedChange {
  Change change = Change::removed;  ///< change of the group
  std::int64_t group = 0;
  std::int64_t a = -1;  ///< -1 if the change is `created`
  std::int64_t b = -1;  ///< -1 if the change is `removed`
  double area = 0;      ///< shared area
  double share_a = 0;   ///< shared area / area of a
  double share_b = 0;
};

/// All kept pairs, and all features without a kept pair, by (group, a, b): each feature is in at least one line. The
/// same for every thread count and device. Throws `over_memory`, `cancelled`. O(pairs + features) time and memory.
VICINAL_API std::vector<ListedChange> list_changes(const Context& ctx, const Match& match);

}  // namespace vicinal

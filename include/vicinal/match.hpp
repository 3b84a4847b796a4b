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

/// When a pair of features is kept, that is, an edge of the graph whose components are the groups.
enum class EdgeRule : std::uint8_t {
  standard,  ///< share of the smaller >= 0.5, or >= `threshold` (0.25) and mean width >= `min_width` (0)
  touch,     ///< they share a point: the rule of Zhang et al., which merges a map of adjacent parcels into one group
  area,      ///< they share an area above 0
  share,     ///< of the smaller one, >= `threshold`
  share_a,   ///< of a's area, >= `threshold`
  share_b,   ///< of b's area, >= `threshold`
  iou,       ///< intersection over union >= `threshold`
  width,     ///< mean width of what they share >= `min_width`
};

/// What became of the features of `a` in a group.
enum class Change : std::uint8_t {
  unchanged,  ///< one to one, IoU >= MatchOptions::unchanged_iou
  modified,   ///< one to one, less than that
  split,      ///< one to many
  merged,     ///< many to one
  created,    ///< none to one
  removed,    ///< one to none
  complex,    ///< many to many
};

/// How an attribute of both maps affects a pair.
enum class Agreement : std::uint8_t {
  ignored,
  required,  ///< a pair is kept only if its codes are equal as well
  enough,    ///< a pair with equal codes is kept if it shares any area
};

VICINAL_API std::string_view name_of(EdgeRule rule) noexcept;
VICINAL_API std::string_view name_of(Change change) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API EdgeRule edge_rule_from(std::string_view name);

struct MatchOptions {
  EdgeRule rule = EdgeRule::standard;
  double threshold = 0;           ///< in (0, 1]; 0: the rule's own (0.25 for `standard`, 0.05 for shares, 0.5 for iou)
  double min_width = 0;           ///< in units of the coordinates
  double sliver_width = 0;        ///< narrower pairs that are not half of both features are never kept; 0: none are
  double unchanged_iou = 0.98;    ///< in [0, 1]
  bool widths = false;            ///< of all pairs, also where the rule does not ask for them
  std::int64_t max_partners = 0;  ///< a feature that the rule gives more is a hub and keeps none; 0: there are no hubs
  double max_area = 0;            ///< a feature with more is a hub; 0: none
  Agreement agreement = Agreement::ignored;
  std::span<const std::int64_t> codes_a = {};  ///< [features of a], -1: unknown, which agrees with nothing
  std::span<const std::int64_t> codes_b = {};  ///< [features of b]
  SplitOptions split = {};  ///< larger groups are divided where small shares of the smaller join them (`split_groups`)
};

struct MatchPair {
  Overlap overlap;
  double share_a = 0;  ///< of a's area
  double share_b = 0;
  double iou = 0;
  bool kept = false;
  bool doubtful = false;    ///< within a factor of two of what decides: worth a look
  std::int64_t group = -1;  ///< of a kept pair, else -1
  bool cut = false;         ///< the rule keeps it, but it joined parts of a group that was divided
  bool sliver = false;      ///< narrower than MatchOptions::sliver_width, and not half of both features
};

struct MatchFeature {
  double area = 0;
  std::int64_t group = -1;
  std::int64_t best = -1;  ///< kept partner that shares most area, ties to the smaller one; -1: none
  bool hub = false;
};

struct MatchGroup {
  std::int64_t count_a = 0;
  std::int64_t count_b = 0;
  Relation type = Relation::one_to_none;
  Change change = Change::removed;
  double area_a = 0;
  double area_b = 0;
  double shared = 0;  ///< over kept pairs
  double iou = 0;     ///< shared / (area_a + area_b - shared)
  double coherence =
      1;  ///< the least share of the smaller on an edge of the group's best spanning tree; 1 without edges
  bool overlaps_itself = false;  ///< two of its features of one side share area, so that sums count it twice
};

struct Match {
  std::vector<MatchPair> pairs;  ///< by (a, b): all that share a point
  std::vector<MatchFeature> a;
  std::vector<MatchFeature> b;
  std::vector<MatchGroup> groups;  ///< by their first member, those of a before those of b
  std::int64_t candidates = 0;     ///< pairs whose boxes meet
  std::int64_t split_groups = 0;   ///< that were divided
  MatchOptions options;            ///< with the threshold that was used; without codes
};

/// Finds the overlaps of two layers, applies the rule to each pair, and groups features by the connected components of
/// the kept pairs, split if they exceed the limits. Every feature is in exactly one group. The same result for every
/// thread count and device. Throws `invalid_argument` naming the option that is out of range and for offsets that do
/// not fit, `bad_data` for coordinates that are neither 0 nor of a magnitude from 1e-120 to 1e140, `over_memory` before
/// pairs are made, `cancelled`. Cost of `overlaps`, and O(pairs log features).
VICINAL_API Match match(const Context& ctx, const PolygonsView& a, const PolygonsView& b,
                        const MatchOptions& options = {});

/// What became of one feature, or how a feature of `a` goes on in one of `b`.
struct ListedChange {
  Change change = Change::removed;  ///< of the group
  std::int64_t group = 0;
  std::int64_t a = -1;  ///< -1 where the change is `created`
  std::int64_t b = -1;  ///< -1 where it is `removed`
  double area = 0;      ///< that they share
  double share_a = 0;   ///< of a's area
  double share_b = 0;
};

/// Every kept pair, and every feature without one, by (group, a, b): each feature is in at least one line. Throws
/// `over_memory`, `cancelled`. O(pairs + features) time and memory.
VICINAL_API std::vector<ListedChange> list_changes(const Context& ctx, const Match& match);

}  // namespace vicinal

// What `vicinal match` says of what it found: a table of pairs, JSON, a sentence.
#pragma once

#include <string>

#include "base/output.hpp"
#include "overlap/advice.hpp"
#include "overlap/carried.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {

/// Everything is borrowed.
struct MatchedFiles {
  std::string path_a;
  std::string path_b;
  const PolygonLayers* layers;
  const Match* match;
  const std::vector<ListedChange>* changes;  ///< of every feature, by group
  const LayerOverlap* within_a;              ///< how much each layer lies on itself
  const LayerOverlap* within_b;
  const CarriedColumns* carried;  ///< of the new map's features
  const CarryOptions* carry;
  Advice advice;
};

constexpr int kChangeCount = static_cast<int>(Change::complex) + 1;
constexpr std::size_t kListed = 100;  ///< what a list in JSON names; a count says how many there are

/// What an old code is after the change: "retained", "replaced", "retired", and "added" for a new one.
std::string_view status_of(Change change) noexcept;
/// A feature for a person: "id", or "id (name)".
std::string label_of(const PolygonLayer& layer, std::int64_t feature);
/// The first kListed of these features' texts.
Json listed(const std::vector<std::int64_t>& features, const std::vector<std::string>& texts);

/// How many groups there are of each word for a change, in the order of `Change`.
std::vector<std::int64_t> count_changes(const Match& match);
std::int64_t count_kept(const Match& match);
/// Slivers that share area.
std::int64_t count_slivers(const Match& match);
/// Pairs that joined parts of groups that were divided.
std::int64_t count_cut(const Match& match);

/// a_id,b_id,area,share_a,share_b,iou,width,relation,kept,doubtful,group,cut,sliver of every pair that shares area, is
/// kept or was cut; a_name after a_id and b_name after b_id where the maps have names.
std::string pairs_csv(const PolygonLayers& layers, const Match& match);
Json to_json(const MatchedFiles& files, double seconds);
std::string summary(const MatchedFiles& files, double seconds);

}  // namespace vicinal::cli

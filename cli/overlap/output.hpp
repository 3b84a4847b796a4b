// What `vicinal match` says of what it found: a table of pairs, JSON, a sentence.
#pragma once

#include <string>

#include "base/output.hpp"
#include "vicinal/polygon_file.hpp"

namespace vicinal::cli {

/// Everything is borrowed.
struct MatchedFiles {
  std::string path_a;
  std::string path_b;
  const PolygonLayers* layers;
  const Match* match;
};

/// How many groups there are of each word for a change, in the order of `Change`.
std::vector<std::int64_t> count_changes(const Match& match);
std::int64_t count_kept(const Match& match);
/// Pairs that joined parts of groups that were divided.
std::int64_t count_cut(const Match& match);

/// a_id,b_id,area,share_a,share_b,iou,width,relation,kept,doubtful,group,cut of every pair that shares area, is kept or
/// was cut.
std::string pairs_csv(const PolygonLayers& layers, const Match& match);
Json to_json(const MatchedFiles& files, double seconds);
std::string summary(const MatchedFiles& files, double seconds);

}  // namespace vicinal::cli

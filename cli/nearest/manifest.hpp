// The parts of one search in a folder, which manifest.json names (docs/ranks.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "vicinal/parts.hpp"

namespace vicinal::cli {

/// Whether an output is a folder for parts: "out/".
bool is_folder_of_parts(const std::string& output);
/// The manifest of a folder.
std::string manifest_in(const std::string& folder);

/// What a manifest says: the whole search, and for each part its file and queries.
class Manifest {
 public:
  /// Of a search of these files, whose parts have `info`, but for their queries.
  Manifest(const std::string& command, const std::string& table, const std::string& queries, const PartInfo& info);
  /// `check_sum`: what `write_part` returned.
  void add(const std::string& file, std::int64_t first_query, std::int64_t queries, std::uint32_t check_sum);
  void write(const std::string& folder) const;

 private:
  Json json_;
};

/// Opens parts: `names` are files of parts, manifests, and folders with one. Throws as `open_part`, and `bad_data` for
/// a manifest that is none, and for a part that is not the one that its manifest names.
std::vector<PartSource> open_parts(const Context& ctx, const std::vector<std::string>& names);

}  // namespace vicinal::cli

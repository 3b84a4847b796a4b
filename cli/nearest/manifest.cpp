// See manifest.hpp.
#include "nearest/manifest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "nearest/shard.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr const char* kManifestFormat = "vicinal parts";
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{4} << 20;  // of 4096 ranks, each of which takes less than 1 kB

[[noreturn]] void refuse_manifest(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::bad_data, fmt::format("{}: {}", path, why));
}

Json read_manifest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (!file || failed) {
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot be read: {}", path, failed ? failed.message() : std::strerror(errno)));
  }
  std::string text(static_cast<std::size_t>(std::min(size, kMaxBytes)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  Json json = size > kMaxBytes ? Json() : Json::parse(text, nullptr, false);
  const bool is_manifest = json.is_object() && json.contains("format") && json["format"] == kManifestFormat &&
                           json.contains("search") && json["search"].is_object() && json.contains("parts") &&
                           json["parts"].is_array();
  if (!is_manifest) refuse_manifest(path, "is no manifest of parts");
  if (!json.contains("version") || json["version"] != 1) {
    refuse_manifest(path, "is a manifest of another version of vicinal");
  }
  return json;
}

/// The files that a manifest names, which are in its folder.
void open_named(const Context& ctx, const std::string& path, std::vector<PartSource>& parts) {
  const Json json = read_manifest(path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const Json& entry : json["parts"]) {
    const auto field = [&](const char* name) {
      return entry.is_object() && entry.contains(name) ? entry[name] : Json();
    };
    const Json file = field("file");
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name != std::filesystem::path(name).filename()) {
      refuse_manifest(path, "names a part that is no file in its folder");
    }
    const std::string place = (folder / name).string();
    parts.push_back(open_part(ctx, place));
    Json wanted = json["search"];
    wanted["first_query"] = field("first_query");
    wanted["queries"] = field("queries");
    if (part_json(parts.back().info) != wanted || field("check_sum") != parts.back().check_sum) {
      refuse_manifest(place, fmt::format("is not the part that {} names", path));
    }
  }
  if (json["parts"].empty()) refuse_manifest(path, "names no part");
}

}  // namespace

bool is_folder_of_parts(const std::string& output) {
  return output.ends_with('/');
}

std::string manifest_in(const std::string& folder) {
  return (std::filesystem::path(folder) / "manifest.json").string();
}

Manifest::Manifest(const std::string& command, const std::string& table, const std::string& queries,
                   const PartInfo& info)
    : json_({{"format", kManifestFormat}, {"version", 1}, {"command", command}, {"table", table}}) {
  json_["queries"] = queries.empty() ? Json(nullptr) : Json(queries);
  json_["search"] = part_json(info);
  json_["search"]["first_query"] = 0;
  json_["search"]["queries"] = info.place.total_queries;
  json_["parts"] = Json::array();
}

void Manifest::add(const std::string& file, std::int64_t first_query, std::int64_t queries, std::uint32_t check_sum) {
  json_["parts"].push_back(
      {{"file", file}, {"first_query", first_query}, {"queries", queries}, {"check_sum", check_sum}});
}

void Manifest::write(const std::string& folder) const {
  write_text(manifest_in(folder), json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<PartSource> open_parts(const Context& ctx, const std::vector<std::string>& names) {
  std::vector<PartSource> parts;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (std::filesystem::is_directory(name, ignored)) {
      open_named(ctx, manifest_in(name), parts);
    } else if (name.ends_with(".json")) {
      open_named(ctx, name, parts);
    } else {
      parts.push_back(open_part(ctx, name));
    }
  }
  return parts;
}

}  // namespace vicinal::cli

// See room.hpp.
#include <algorithm>
#include <string>

#include "cuda/base/row_parts.hpp"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/kmeans/room.hpp"
#include "cuda/kmeans/seeding.hpp"
#include "cuda/nearest/screen/screen.hpp"
#include "formulas/nearest/half_screen.hpp"

namespace vicinal::cuda::kmeans {
namespace {

constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - 1;  // of a part
constexpr std::int64_t kMinPart = 256;                          // rows
constexpr std::int64_t kPartBytes = std::int64_t{256} << 20;
constexpr std::int64_t kPlannedLimbs = 2;
constexpr std::int64_t kMinNarrowed = std::int64_t{1} << 15;  // elements of centers: all their keys cost much
// What a row's own center says takes as long as comparing the row with some 2,300 centers in the quicker way gains; of
// many columns the products take longest in any way. Rivals are numbered in 16 bits.
constexpr std::int64_t kMinConfirmed = 4096;
constexpr std::int64_t kMaxConfirmed = std::int64_t{1} << 16;
constexpr std::int64_t kMaxConfirmedColumns = 160;
constexpr std::int64_t kMinOrdered = std::int64_t{1} << 24;  // terms

// Seconds of one multiprocessor for a row: fused multiply-adds of the float32 screen, and what the float16 screen's
// products and comparisons take, whichever is more.
constexpr double kFloatRate = 1.6e11;
constexpr double kHalfRate = 4.9e12;
constexpr double kScoreRate = 2.8e10;

/// Rows on the device at a time: all of them, or as many as take half of what is left, so that other tables (batches,
/// candidates for centers) have room beside them. Rows that lie there do not pass through.
std::int64_t part_of(const Session& session, const plugin::Clustering& task) {
  const plugin::Table& table = task.table;
  if (lies_there(table)) {
    if (table.rows <= kMaxRows) return table.rows;
    throw Failure{ErrorCode::over_memory, "kmeans: more than 2^31 - 1 rows in a device's memory are not served"};
  }
  const auto bytes = [&](std::int64_t part) { return clustering_bytes(session.engine, task, kPlannedLimbs, part); };
  if (table.rows <= kMaxRows && bytes(table.rows) <= left_of(session)) return table.rows;
  std::int64_t part = std::min((table.rows + 1) / 2, std::max(kPartBytes / row_bytes(table), kMinPart));
  while (part > kMinPart && bytes(part) > left_of(session) / 2) part = std::max(part / 2, kMinPart);
  return part;
}

}  // namespace

bool takes_half(const Engine& engine, std::int64_t d, std::int64_t k) {
  if (engine.portable || engine.sums.model.width == 0 || d > core::kLargestHalfColumns) return false;
  // All centers of a tile are multiplied; of the last one's a half or a quarter may be compared.
  const std::int64_t whole = k / kTableTile * kTableTile;
  std::int64_t last = kTableTile;
  while (last > kTableTile / 4 && k - whole <= last / 2) last /= 2;
  const double products = 2.0 * static_cast<double>(round_to(k, kTableTile) * core::half_columns(d)) / kHalfRate;
  const double half = std::max(products, static_cast<double>(whole + (k > whole ? last : 0)) / kScoreRate) * 1.5;
  const int panel = panel_for(engine, d);
  return panel == 0 || half < static_cast<double>(round_to(k, panel) * (d + 2)) / kFloatRate;
}

std::int64_t narrow_room(const Engine& engine, std::int64_t rows, std::int64_t d, std::int64_t k) {
  if (k * d < kMinNarrowed || engine.ablation == core::Ablation::kmeans_second_pass) return 0;
  return round_to((rows + 7) / 8, kQueryTile);
}

bool confirms_labels(std::int64_t d, std::int64_t k) {
  return k >= kMinConfirmed && k <= kMaxConfirmed && core::half_columns(d) <= kMaxConfirmedColumns;
}

bool orders_changes(const Engine& engine, const plugin::Clustering& task, std::int64_t rows) {
  return task.sums != 0 && rows * task.table.cols >= kMinOrdered && engine.ablation != core::Ablation::kmeans_ordering;
}

std::int64_t hash_places(std::int64_t k) {
  std::int64_t places = 64;
  while (places < 2 * k) places *= 2;
  return places;
}

std::int64_t sum_columns(const plugin::Clustering& task) {
  return task.table.cols + (task.weights != nullptr ? 1 : 0);
}

std::uint64_t sum_bytes(const plugin::Clustering& task, std::int64_t limbs) {
  if (task.sums == 0) return 0;
  const std::int64_t sums = task.clusters * limbs * sum_columns(task);
  // Of a shard its own, and those of all shards with their sizes, which are made when the limbs are known.
  const bool is_shard = task.sums == plugin::kSumsOfShard && limbs > 0;
  return static_cast<std::uint64_t>(is_shard ? 2 * sums + task.clusters : sums) * 8;
}

std::uint64_t clustering_bytes(const Engine& engine, const plugin::Clustering& task, std::int64_t limbs,
                               std::int64_t part) {
  const std::int64_t n = task.table.rows;
  const std::int64_t d = task.table.cols;
  const std::int64_t padded = round_to(part, kPointTile);
  const std::int64_t k = task.clusters + kWidePanel;
  // Labels; new ones, lists, and keys while they are asked.
  std::int64_t bytes = n * 4 + part * (3 * 4 + 8) + RowParts::bytes(task.table, part);
  if (takes_half(engine, d, task.clusters)) {
    bytes += round_to(part, kQueryTile) * (core::half_columns(d) * 2 + 16);
    bytes += round_to(k, kTableTile) * (core::half_columns(d) * 2 + 16);
    const std::int64_t room = narrow_room(engine, part, d, task.clusters);
    bytes += room * (core::half_columns(d) * 2 + 8 + kMaxCandidates * 4);
    if (room > 0) bytes += part * 4;
    if (room > 0 && confirms_labels(d, task.clusters)) bytes += k * core::half_columns(d) * 2;
  } else if (panel_for(engine, d) > 0) {
    bytes += padded * (d + 1) * 4;
  }
  if (task.weights != nullptr) bytes += n * 8;
  if (orders_changes(engine, task, part)) bytes += part * 8 + (k + 1) * 12;
  bytes +=
      k * (d * 8 + (d + 2) * 4 + 64) + d * 64 + 4096 + hash_places(k) * static_cast<std::int64_t>(sizeof(HashPlace));
  return static_cast<std::uint64_t>(bytes) + sum_bytes(task, limbs);
}

std::uint64_t left_of(const Session& session) {
  const std::uint64_t limit = session.engine.memory_limit;
  return limit - std::min<std::uint64_t>(limit, session.resident_bytes);
}

void require_room(const Session& session, std::uint64_t bytes, const char* what) {
  if (bytes <= left_of(session)) return;
  throw Failure{ErrorCode::over_memory, std::string(what) + " needs " + std::to_string((bytes >> 20) + 1) +
                                            " MiB of device memory, but only " +
                                            std::to_string(left_of(session) >> 20) + " MiB are left within its limit"};
}

bool lies_there(const plugin::Table& table) {
  return static_cast<Memory>(table.memory) == Memory::cuda;
}

plugin::ClusterRoom clustering_room(const Session& session, const plugin::Clustering& task) {
  plugin::ClusterRoom room;
  room.part = part_of(session, task);
  room.bytes = clustering_bytes(session.engine, task, kPlannedLimbs, room.part);
  if (task.trials >= 0) {
    const std::uint64_t seeding = Seeding::bytes(task.table.rows, task.table.cols, task.trials);
    const bool fits = room.part == task.table.rows && room.bytes + seeding <= left_of(session);
    room.seeds = fits || lies_there(task.table) ? 1 : 0;
    if (room.seeds != 0) room.bytes += seeding;
  }
  require_room(session, room.bytes, "kmeans");
  return room;
}

const char* clustering_screens(const Engine& engine, const plugin::Clustering& task) {
  if (takes_half(engine, task.table.cols, task.clusters)) return "float16";
  return panel_for(engine, task.table.cols) > 0 ? "float32" : "";
}

}  // namespace vicinal::cuda::kmeans

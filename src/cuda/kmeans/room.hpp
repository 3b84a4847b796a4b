// What k-means takes of a device, and which of its ways a shape takes there: decided before anything is allocated.
#pragma once

#include <cstdint>

#include "cuda/base/session.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda::kmeans {

inline std::int64_t round_to(std::int64_t x, std::int64_t step) {
  return (x + step - 1) / step * step;
}

/// Whether the float16 screen is the quicker one, where there is one.
bool takes_half(const Engine& engine, std::int64_t d, std::int64_t k);
/// Rows, of so many, that may be screened a second time.
std::int64_t narrow_room(const Engine& engine, std::int64_t rows, std::int64_t d, std::int64_t k);
/// Whether the float16 screen, once few labels change, asks only which rows keep theirs: half.cu.
bool confirms_labels(std::int64_t d, std::int64_t k);
/// Whether changes of so many rows are ordered before they are added.
bool orders_changes(const Engine& engine, const plugin::Clustering& task, std::int64_t rows);
/// Places of the table of centers' hashes.
std::int64_t hash_places(std::int64_t k);
/// Columns of sums: one more of the weights, where there are some.
std::int64_t sum_columns(const plugin::Clustering& task);
std::uint64_t sum_bytes(const plugin::Clustering& task, std::int64_t limbs);

/// Whether the table lies in the device's memory. Its rows do not pass through then.
bool lies_there(const plugin::Table& table);
/// Bytes of device memory with so many rows there at a time.
std::uint64_t clustering_bytes(const Engine& engine, const plugin::Clustering& task, std::int64_t limbs,
                               std::int64_t part);
/// Bytes within the session's limit that nothing holds.
std::uint64_t left_of(const Session& session);
/// Throws `over_memory`, naming both numbers.
void require_room(const Session& session, std::uint64_t bytes, const char* what);
/// What a clustering would take, with two limbs. Throws `over_memory` where that is not to be had.
plugin::ClusterRoom clustering_room(const Session& session, const plugin::Clustering& task);
/// The names of its screens.
const char* clustering_screens(const Engine& engine, const plugin::Clustering& task);

}  // namespace vicinal::cuda::kmeans

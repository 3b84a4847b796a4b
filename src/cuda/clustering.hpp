// A clustering: rows that stay on the device while k-means labels them again and again (cluster.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/cluster.hpp"
#include "cuda/plugin.hpp"
#include "cuda/seeding.hpp"

namespace vicinal::cuda {

class Clustering {
 public:
  /// Throws `bad_data` naming row and column, `over_memory`.
  Clustering(Session& session, const plugin::Clustering& task);
  ~Clustering();
  Clustering(const Clustering&) = delete;
  Clustering& operator=(const Clustering&) = delete;

  void start(const double* centres, std::int64_t k);
  plugin::ClusterStep step(std::int32_t work);
  void move(std::int64_t row, std::int32_t cluster);
  void state(const plugin::ClusterState& state);
  void rows(const std::int64_t* rows, std::int64_t count, double* values);
  void seed(std::int64_t trials);
  /// Makes rows, at most the clusters, centres of the seeding.
  void meet(const std::int64_t* rows, std::int64_t count);
  [[nodiscard]] Seeding& seeding() { return *seeding_; }
  [[nodiscard]] Session& session() const { return session_; }

 private:
  void take_in(const plugin::Clustering& task);
  void scan(const plugin::Clustering& task);
  void make_frame(const ColumnScan* columns, double largest);
  void make_half(const ColumnScan* columns, const double* middle);
  void plan_sums(const plugin::Clustering& task, const ColumnScan* columns);
  void make_room();
  void forget();
  void label(const ClusterView& view) const;

  Session& session_;
  const Engine& engine_;
  ClusterView view_;
  std::int64_t most_;  ///< clusters
  std::uint64_t bytes_ = 0;
  Buffer<std::byte> copy_;
  Buffer<double> weights_;
  Buffer<float> shift_;
  Buffer<double> middle_;
  Buffer<float> points_;
  Buffer<__half> tiles_;
  Buffer<HalfFacts> facts_;
  Buffer<float> norms_;
  Buffer<double> centres_;
  Buffer<double> shifts_;
  Buffer<float> panels_;
  Buffer<float> bounds_;
  Buffer<unsigned long long> hashes_;
  Buffer<HashPlace> hash_table_;
  Buffer<std::int32_t> labels_;
  Buffer<std::uint32_t> lists_;
  Buffer<std::uint32_t> wide_;
  Buffer<__half> open_tiles_;
  Buffer<float> reaches_;
  Buffer<std::int32_t> candidates_;
  Buffer<int> bases_;
  Buffer<std::uint32_t> entries_;
  Buffer<std::uint32_t> cursors_;
  Buffer<std::uint64_t> change_counts_;
  Buffer<std::int64_t> sums_;
  Buffer<long long> sizes_;
  Buffer<ClusterOutcome> outcome_;
  ClusterOutcome* told_ = nullptr;  ///< pinned
  std::unique_ptr<Seeding> seeding_;
};

/// Bytes of device memory it takes, with two limbs; throws `over_memory` where they are not to be had.
std::uint64_t clustering_bytes(const Session& session, const plugin::Clustering& task);
/// The names of its screens.
const char* clustering_screens(const Engine& engine, const plugin::Clustering& task);

}  // namespace vicinal::cuda

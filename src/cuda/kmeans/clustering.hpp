// A clustering: rows that k-means labels again and again (cluster.hpp). They stay on the device, packed, where they
// fit; else each assignment packs them anew while they pass through (row_parts.hpp), and only labels and weights stay.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/base/replay.hpp"
#include "cuda/base/row_parts.hpp"
#include "cuda/kmeans/cluster.hpp"
#include "cuda/kmeans/seeding.hpp"
#include "plugin/abi/plugin.hpp"

namespace vicinal::cuda::kmeans {

class Clustering {
 public:
  /// Throws `bad_data` naming row and column, `over_memory`, `cancelled`.
  Clustering(Session& session, const Host& host, const plugin::Clustering& task);
  ~Clustering();
  Clustering(const Clustering&) = delete;
  Clustering& operator=(const Clustering&) = delete;

  // `table`: always the same, for rows that pass through.
  void start(const double* centres, std::int64_t k);
  void recentre(const double* centres);
  plugin::ClusterStep step(const Host& host, const plugin::Table& table, std::int32_t work);
  void move(const plugin::Table& table, std::int64_t row, std::int32_t cluster);
  void state(const Host& host, const plugin::Table& table, const plugin::ClusterState& state);
  void rows(const plugin::Table& table, const std::int64_t* rows, std::int64_t count, double* values);
  // Of some of a table's rows: see plugin/abi/plugin.hpp.
  void ranges(plugin::TermRange* columns) const;
  void share(const plugin::SumLayout& layout);
  void parts(std::int64_t*& parts);
  void means_of(const std::int64_t* parts, double* shift);
  /// Whether there is room for a seeding; one of rows that lie in the device's memory has no other place.
  [[nodiscard]] bool seeds(std::int64_t trials) const;
  void seed(std::int64_t trials);
  /// Makes rows, at most the clusters, centers of the seeding.
  void meet(const std::int64_t* rows, std::int64_t count);
  [[nodiscard]] Seeding& seeding() { return *seeding_; }
  [[nodiscard]] Session& session() const { return session_; }

 private:
  void scan(const Host& host, const plugin::Clustering& task);
  [[nodiscard]] std::vector<double> middle_of(const plugin::Table& table);
  void make_frame(const plugin::Table& table, const ColumnScan* columns, double largest);
  void make_half(const ColumnScan* columns, const double* middle);
  void plan_sums(const plugin::Clustering& task);
  void make_sums(const plugin::SumLayout& layout);
  void make_room();
  void make_half_room();
  void make_point_room();
  void show(const Rows& rows, std::int64_t first);
  void pack();
  void forget();
  void label(const Engine& engine, bool first);
  void assign(const Engine& engine, bool first);
  void launch(const Engine& engine, std::int32_t work);
  [[nodiscard]] bool makes_ready(std::int32_t work) const;

  Session& session_;
  const Engine& engine_;
  ClusterView view_;
  std::int64_t most_;  ///< clusters
  std::uint64_t bytes_ = 0;
  bool lies_there_;        ///< the table, in the device's memory
  bool adds_all_;          ///< not only what changed
  bool orders_ = false;    ///< changes are ordered before they are added
  bool confirms_ = false;  ///< the next assignment asks which rows keep their labels
  bool ready_ = false;     ///< for the next assignment: the tally is clear, and the screen has the centers
  std::vector<ColumnScan> scanned_;
  RowParts parts_;
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
  Buffer<std::int32_t> fresh_;
  Buffer<std::uint32_t> lists_;
  Buffer<std::uint32_t> wide_;
  Buffer<__half> open_tiles_;
  Buffer<__half> centre_rows_;
  Buffer<float> reaches_;
  Buffer<std::int32_t> candidates_;
  Buffer<int> bases_;
  Buffer<std::uint32_t> entries_;
  Buffer<std::uint32_t> cursors_;
  Buffer<std::uint64_t> change_counts_;
  Buffer<std::int64_t> sums_;
  Buffer<long long> sizes_;
  Buffer<ClusterOutcome> outcome_;
  ClusterOutcome* told_ = nullptr;    ///< pinned
  std::int64_t* shown_ = nullptr;     ///< pinned: the sums and sizes of a shard
  Buffer<std::int64_t> shared_sums_;  ///< of all shards
  Buffer<long long> shared_sizes_;
  Replay replay_;
  std::unique_ptr<Seeding> seeding_;
};

}  // namespace vicinal::cuda::kmeans

// lof: the local outlier factor, which compares a row's density with that of its neighbors, and related scores of a
// neighbor graph (docs/contract.md, clause 13). Larger scores are more outlying.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/preprocess.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// The score of a row p, computed from its neighbors. O(k) per row; ldof, cof and cof_pyod O(k^2 d).
enum class OutlierScore : std::uint8_t {
  lof,             ///< mean density of the neighbors / density of p (Breunig et al. 2000); 1: equally dense
  simplified_lof,  ///< the same, density = 1 / k-distance (Schubert et al. 2014)
  knn,             ///< k-distance (Ramaswamy et al. 2000)
  knn_weighted,    ///< sum of the distances to the neighbors (Angiulli and Pizzuti 2002)
  loop,            ///< a probability in [0, 1] (Kriegel et al. 2009)
  ldof,   ///< mean distance to the neighbors / their mean distance to each other (Zhang et al. 2009); needs the table
  inflo,  ///< as simplified_lof, but neighbors include the rows that have p as a neighbor (Jin et al. 2006)
  cof,  ///< mean step of a path through the neighbors / the same for the neighbors (Tang et al. 2002); needs the table
  cof_pyod,  ///< cof as in PyOD: the path visits neighbors in the order of their distance from p; needs the table
};

/// The policy for rows with k or more duplicates, whose density is unbounded. docs/outliers.md says when to use which.
enum class Duplicates : std::uint8_t {
  sklearn,   ///< 1e-10 is added to the mean reachability distance; scores next to duplicates grow to 1e10
  infinite,  ///< "inf": duplicates score 1, their neighbors infinity, as in ELKI
  one,       ///< such a row scores 1, or 0 if none of its neighbors is such a row; as in R's dbscan
  distinct,  ///< neighborhoods have k distinct points and all their duplicates: the paper's k-distinct-distance
  cap,       ///< densities are capped at twice the largest finite one
};

/// Which rows are neighbors if several rows are as far away as the k-th.
enum class Ties : std::uint8_t {
  cut,  ///< k in total: of equally distant rows those with smaller ids
  all,  ///< all of them, as in the definition of 2000
};

/// How the scores for all k of a range are combined.
enum class AcrossK : std::uint8_t { max, mean, min };

VICINAL_API std::string_view name_of(OutlierScore score) noexcept;
VICINAL_API std::string_view name_of(Duplicates duplicates) noexcept;
VICINAL_API std::string_view name_of(Ties ties) noexcept;
VICINAL_API std::string_view name_of(AcrossK across) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API OutlierScore outlier_score_from(std::string_view name);
VICINAL_API Duplicates duplicates_from(std::string_view name);
VICINAL_API Ties ties_from(std::string_view name);
VICINAL_API AcrossK across_k_from(std::string_view name);

struct LofOptions {
  std::int64_t k = 20;    ///< neighbors; 1 <= k <= n - 1. ldof: at least 2
  std::int64_t k_to = 0;  ///< if above k: lof for every k from `k` to `k_to`, combined by `across`; 0: one k
  AcrossK across = AcrossK::max;
  OutlierScore score = OutlierScore::lof;
  /// For the scores with densities: lof, simplified_lof, inflo. `distinct`, which changes the neighbors, is for lof,
  /// simplified_lof, knn, knn_weighted and loop, but not for inflo.
  Duplicates duplicates = Duplicates::sklearn;
  Ties ties = Ties::cut;              ///< `all`: for lof, simplified_lof, knn, knn_weighted and loop
  double lambda = 3;                  ///< loop only: number of standard deviations that count as outlying; above 0
  double contamination = 0;           ///< fraction of outliers, in (0, 0.5]; 0: the default threshold of the score
  bool novelty = false;               ///< keep k-distances and densities, so that new rows can be scored
  Metric metric = Metric::euclidean;  ///< inner_product, whose distances may be negative, is refused
  double p = 2;
  Method method = Method::automatic;
};

/// Scores of a table's rows, and the data to score new rows.
struct Lof {
  std::vector<double> scores;  ///< [n] finite, or infinity with some policies for duplicates
  /// Rows with a larger score are outliers. The default is 1.5, but 1 for ldof, 0.5 for loop, and infinity for knn and
  /// knn_weighted.
  double threshold = 0;
  std::int64_t outliers = 0;  ///< number of rows above the threshold
  std::int64_t copied = 0;  ///< rows whose k-th neighbor (for a range, k_to-th) is at distance 0, so that their density
                            ///< is unbounded; with Duplicates::distinct or Ties::all, rows with at least k duplicates

  LofOptions options;               ///< those of the call
  std::vector<double> k_distances;  ///< [n, ks] with `novelty`; ks = 1, or one for each k of the range
  std::vector<double> densities;  ///< [n, ks] with `novelty`; for loop the standard distance, for cof and cof_pyod the
                                  ///< chaining distance
  std::vector<double> caps;       ///< [ks] with Duplicates::cap: the density that replaces infinity
  double spread = 0;              ///< loop: lambda times the root of the mean squared PLOF

  Plan plan;
  SearchStats stats;
  double score_seconds = 0;  ///< after the neighbors were found
};

/// Scores [n] of the rows of a graph that `knn` or `radius` computed without queries. The first k neighbors of each row
/// count; of a radius graph all neighbors count, and `k` is ignored. O(n k) time and O(n) memory; for a range O(n k
/// (k_to - k)) and O(n (k_to - k)). The same bits for every thread count, instruction set and device. Throws
/// `invalid_argument` for options outside their domain and scores, ties or policies that need the table, `bad_data`
/// naming the row for graphs whose ids or distances cannot be a table's within itself, `over_memory` before it starts.
VICINAL_API Lof lof(const Context& ctx, const NeighborGraph& graph, const LofOptions& options = {});
/// As above, with the table [n, d] of the graph, which ldof, cof and cof_pyod need; these take O(n k^2 d) time. Throws
/// also `bad_data` for two neighbors whose distance overflows.
VICINAL_API Lof lof(const Context& ctx, const NeighborGraph& graph, const TableView& table, const LofOptions& options);
/// Finds the neighbors of the table's rows, then computes the scores [n]; on a device the lists stay there. Cost of
/// `knn`, and of the scores. The same bits for every thread count, instruction set and device. Throws
/// `invalid_argument` for options outside their domain, `bad_data` for NaN, infinity and distances that overflow,
/// `over_memory` before work begins, `cancelled`.
VICINAL_API Lof lof(const Context& ctx, const TableView& table, const LofOptions& options = {});
VICINAL_API Lof lof(const Context& ctx, const Index& index, const LofOptions& options = {});

/// Scores [m] of queries relative to a table, from a result of `lof` for this table with LofOptions::novelty. The
/// k-distances and densities of the table's rows are those of that result. A query that equals a table row has that row
/// as a neighbor. Not for inflo, which needs reverse neighbors. Throws `invalid_argument` for a model of another table,
/// one made without `novelty` and queries of another width, `bad_data` for NaN, infinity and distances that overflow,
/// `over_memory`, `cancelled`. Cost of `knn` with m queries, and of their scores.
VICINAL_API std::vector<double> novelty(const Context& ctx, const Index& index, const Lof& model,
                                        const TableView& queries);

/// An index and the result of `lof` for it, in one file, to score new rows later.
struct VICINAL_API LofModel {
  Index index;  ///< index of the rows that are compared; prepared rows if the model has a preparation
  Lof fitted;   ///< the result of `lof` for `index` with LofOptions::novelty; its plan and stats are not saved
  std::string notes = {};  ///< any text of the caller, saved with the model: UTF-8, up to a few MB
  /// The preparation of the columns that the model's rows have passed. Functions that take a model apply it to the
  /// queries. A preparation without columns does nothing.
  Preparation preparation = {};

  /// Writes the file (safetensors layout), first under a temporary name, then renamed. Throws `invalid_argument` for a
  /// result made without `novelty` or of another table, and a preparation that results in other columns than the index
  /// has, `io` when the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Reads a saved model; the file is mapped if the context maps files (CpuOptions::map_files). Throws `bad_data` for
  /// anything that `save` did not write, `io`, `over_memory`.
  static LofModel load(const Context& ctx, const std::filesystem::path& path);
};

/// Scores [m] of queries that have the form of the rows that the model was made from: the model's preparation is
/// applied to them, then `novelty` scores them. `queries` as a Table may have columns of text (Preparation::read).
/// Throws `invalid_argument` for queries of another width and a model whose parts do not fit together, `bad_data` for
/// columns with other names or types and for NaN, infinity and distances that overflow, `over_memory`, `cancelled`.
/// Cost of `novelty`, and 8 bytes for each value of the prepared queries; the same bits for every thread count,
/// instruction set and device.
VICINAL_API std::vector<double> novelty(const Context& ctx, const LofModel& model, const Table& queries);
/// As above, for rows of numbers. Throws `invalid_argument` naming the column if the model's rows have a column of
/// text.
VICINAL_API std::vector<double> novelty(const Context& ctx, const LofModel& model, const TableView& queries);

/// The plan of `lof` without running it: method, bytes of memory, expected seconds and the reason. Throws
/// `invalid_argument` for options outside their domain and `bad_data` for NaN and infinity.
VICINAL_API Plan plan_lof(const Context& ctx, const TableView& table, const LofOptions& options = {});

}  // namespace vicinal

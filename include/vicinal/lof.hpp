// lof: how much less dense a row's surroundings are than its neighbors' (the local outlier factor), and the family of
// scores that one neighbor graph gives (docs/contract.md, clause 13). Scores are such that larger is more outlying.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/graph.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/model_options.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// What is computed of a row p and its neighbors. O(k) a row, but for ldof and the cofs: O(k^2 d).
enum class OutlierScore : std::uint8_t {
  lof,             ///< mean density of the neighbors over one's own (Breunig et al. 2000); 1: as dense as they are
  simplified_lof,  ///< the same, density = 1 / k-distance (Schubert et al. 2014)
  knn,             ///< k-distance (Ramaswamy et al. 2000)
  knn_weighted,    ///< sum of the distances to the neighbors (Angiulli and Pizzuti 2002)
  loop,            ///< a probability in [0, 1] (Kriegel et al. 2009)
  ldof,            ///< mean distance to the neighbors over theirs to each other (Zhang et al. 2009); needs the table
  inflo,           ///< as simplified_lof, with the rows that have p among their neighbors, too (Jin et al. 2006)
  cof,             ///< length of the chain through the neighbors over theirs (Tang et al. 2002); needs the table
  cof_pyod,        ///< the same as PyOD walks it: always to the next neighbor by distance from p
};

/// What becomes of rows that have k copies or more, whose density has no bound. See docs/outliers.md for when to use
/// which.
enum class Duplicates : std::uint8_t {
  sklearn,   ///< 1e-10 is added to the mean reach distance; scores beside copies grow to 1e10
  infinite,  ///< "inf": they score 1, their neighbors infinity, as in ELKI
  one,       ///< they score 1 among themselves, 0 beside others, as in R's dbscan
  distinct,  ///< neighborhoods hold k different places, copies all counted: the paper's k-distinct-distance
  cap,       ///< no density is above twice the largest that is finite
};

/// Which rows are neighbors where more than one is as far away as the k-th.
enum class Ties : std::uint8_t {
  cut,  ///< k of them, by the smaller id
  all,  ///< all, as in the definition of 2000
};

/// What is kept of the scores by every k of a range.
enum class AcrossK : std::uint8_t { max, mean, min };

VICINAL_API std::string_view name_of(OutlierScore score) noexcept;
VICINAL_API std::string_view name_of(Duplicates duplicates) noexcept;
VICINAL_API std::string_view name_of(Ties ties) noexcept;
VICINAL_API std::string_view name_of(AcrossK across) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the names there are.
VICINAL_API OutlierScore outlier_score_from(std::string_view name);
VICINAL_API Duplicates duplicates_from(std::string_view name);
VICINAL_API Ties ties_from(std::string_view name);
VICINAL_API AcrossK across_k_from(std::string_view name);

struct LofOptions {
  std::int64_t k = 20;    ///< neighbors; 1 <= k <= n - 1. ldof: at least 2
  std::int64_t k_to = 0;  ///< above k: lof for every k from `k` to this one, joined by `across`; 0: one k
  AcrossK across = AcrossK::max;
  OutlierScore score = OutlierScore::lof;
  /// Of scores made of densities: lof, simplified_lof, inflo. `distinct`, which says who is a neighbor, also of the
  /// distances and loop, not of inflo.
  Duplicates duplicates = Duplicates::sklearn;
  Ties ties = Ties::cut;     ///< `all`: of lof, simplified_lof, the distances and loop
  double lambda = 3;         ///< of loop: deviations that it calls far, above 0
  double contamination = 0;  ///< share of outliers, in (0, 0.5]; 0: the threshold that the score itself suggests
  bool novelty = false;      ///< keep k-distances and densities, so that other rows can be scored
  Metric metric = Metric::euclidean;  ///< inner_product, whose distances may be negative, is refused
  double p = 2;
  Method method = Method::automatic;
};

/// Scores of a table's rows, and what is needed to score others.
struct Lof {
  std::vector<double> scores;  ///< [n] finite, or infinity by some policies for copies
  /// Rows with a score above it are outliers. By itself 1.5, but 1 for ldof, 0.5 for loop, and infinity for the two
  /// that are distances.
  double threshold = 0;
  std::int64_t outliers = 0;  ///< rows above it
  std::int64_t copied = 0;    ///< rows whose k-th neighbor (of a range the last one) is at distance 0, so that their
                              ///< density has no bound; of neighborhoods of places, rows that k others equal

  LofOptions options;               ///< those it was made with
  std::vector<double> k_distances;  ///< [n, ks] with `novelty`; ks = 1, or one for each k of the range
  std::vector<double> densities;    ///< [n, ks]: of loop the standard distance, of the cofs the chaining distance
  std::vector<double> caps;         ///< [ks] with Duplicates::cap: the density that stands for infinity
  double spread = 0;                ///< of loop: lambda times the root of the mean squared PLOF

  Plan plan;
  SearchStats stats;
  double score_seconds = 0;  ///< after the neighbors were found
};

/// Scores of the rows that a graph joins: one made by `knn` or `radius` without queries, of which the first k neighbors
/// of each row count (of CSR all: `k` is not looked at). O(n k) time, O(n) memory; a range O(n k (k_to - k)) and
/// O(n (k_to - k)). Throws `invalid_argument` for options outside their domain and scores, ties or policies that need
/// the table, `bad_data` naming the row for graphs whose ids or distances cannot be a table's within itself,
/// `over_memory` before it starts.
VICINAL_API Lof lof(const Context& ctx, const NeighborGraph& graph, const LofOptions& options = {});
/// The same with the table [n, d] that the graph is of, for ldof and the cofs.
VICINAL_API Lof lof(const Context& ctx, const NeighborGraph& graph, const TableView& table, const LofOptions& options);
/// Neighbors are found first. On a device they do not leave it. Throws what `knn` throws, too.
VICINAL_API Lof lof(const Context& ctx, const TableView& table, const LofOptions& options = {});
VICINAL_API Lof lof(const Context& ctx, const Index& index, const LofOptions& options = {});

/// Scores [m] of other rows among those of the table, by a result that was made from it with `novelty`: distances and
/// densities of the table's rows are those of then, and a row that is in the table is a neighbor of itself. Not for
/// inflo, which looks from both sides. Throws what `lof` throws.
VICINAL_API std::vector<double> novelty(const Context& ctx, const Index& index, const Lof& model,
                                        const TableView& queries);

/// All that `novelty` needs, in one file: the index with its table, and the result that was made of it.
struct VICINAL_API LofModel {
  Index index;
  Lof fitted;              ///< made of `index` with `novelty`; its plan and stats are not saved
  std::string notes = {};  ///< what else the caller wants to find again: UTF-8, up to some MB
  /// What was done to the columns before the rows came here (say, "--scale standard"), in a few words, UTF-8; empty:
  /// nothing. The library does not do it to queries, so that `load` refuses such a model unless it is allowed to.
  std::string preparation = {};

  /// Writes the file (safetensors layout), to a temporary first, then renamed. Throws `invalid_argument` for a result
  /// made without `novelty` or of another table, `io` when the file cannot be written.
  void save(const Context& ctx, const std::filesystem::path& path) const;
  /// Maps a saved model. Throws `bad_data` for anything that `save` did not write, `invalid_argument` for one with a
  /// `preparation`, unless the options allow it.
  static LofModel load(const Context& ctx, const std::filesystem::path& path, const ModelOptions& options = {});
};

/// What `lof` would do and the memory it needs, without doing it.
VICINAL_API Plan plan_lof(const Context& ctx, const TableView& table, const LofOptions& options = {});

}  // namespace vicinal

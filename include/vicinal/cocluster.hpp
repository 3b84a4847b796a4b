// cocluster: which members of two sets belong together, given pairs that correspond (docs/contract.md, clause 16): the
// connected components of a bipartite graph, and whether each is 1:1, 1:n, n:1 or n:m.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vicinal/context.hpp"
#include "vicinal/table.hpp"

namespace vicinal {

/// Edges (a[e], b[e]) between a member of side A, in [0, n_a), and one of side B, in [0, n_b). Borrowed host memory.
/// Edges may come in any order and more than once. Weights, one per edge, are finite and at least 0; an edge of weight
/// 0 counts like any other.
class VICINAL_API BipartiteEdges {
 public:
  BipartiteEdges() = default;
  /// Throws `invalid_argument` for negative sizes, and if a, b and weights (unless empty) differ in length.
  BipartiteEdges(std::int64_t n_a, std::int64_t n_b, std::span<const std::int64_t> a, std::span<const std::int64_t> b,
                 std::span<const double> weights = {});
  BipartiteEdges(std::int64_t n_a, std::int64_t n_b, std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                 std::span<const double> weights = {});

  [[nodiscard]] std::int64_t n_a() const noexcept { return n_a_; }
  [[nodiscard]] std::int64_t n_b() const noexcept { return n_b_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Whether ids have 64 bits; else they have 32.
  [[nodiscard]] bool is_wide() const noexcept { return wide_; }
  [[nodiscard]] const void* a() const noexcept { return a_; }
  [[nodiscard]] const void* b() const noexcept { return b_; }
  [[nodiscard]] std::int64_t a(std::int64_t edge) const noexcept { return id(a_, edge); }
  [[nodiscard]] std::int64_t b(std::int64_t edge) const noexcept { return id(b_, edge); }
  [[nodiscard]] std::span<const double> weights() const noexcept { return weights_; }

 private:
  [[nodiscard]] std::int64_t id(const void* ids, std::int64_t edge) const noexcept {
    return wide_ ? static_cast<const std::int64_t*>(ids)[edge] : static_cast<const std::int32_t*>(ids)[edge];
  }

  std::int64_t n_a_ = 0;
  std::int64_t n_b_ = 0;
  std::int64_t size_ = 0;
  const void* a_ = nullptr;
  const void* b_ = nullptr;
  std::span<const double> weights_;
  bool wide_ = true;
};

/// How groups are found. Every method gives the same labels.
enum class CoclusterMethod : std::uint8_t {
  components,  ///< union-find by all threads at once; O(edges + members) memory
  closure,     ///< the adjacency matrix with self loops, one bit per element, squared until nothing changes
  // The closure with integers, as in the paper (docs/papers.md): quadratic memory, cubic time.
  product_serial,  ///< three loops on one core of the host
  product_global,  ///< one thread per element, rows and columns in global memory
  product_tiled,   ///< by tiles in shared memory, or in a core's cache
};

/// How many members of A and of B a group has.
enum class Relation : std::uint8_t { one_to_one, one_to_many, many_to_one, many_to_many, one_to_none, none_to_one };

VICINAL_API std::string_view name_of(CoclusterMethod method) noexcept;
/// "1:1", "1:n", "n:1", "n:m", "1:0", "0:1".
VICINAL_API std::string_view name_of(Relation relation) noexcept;
/// The inverse of `name_of`. Throws `invalid_argument` listing the valid names.
VICINAL_API CoclusterMethod cocluster_method_from(std::string_view name);

struct CoclusterOptions {
  CoclusterMethod method = CoclusterMethod::components;
};

struct CoclusterGroup {
  std::int64_t label = 0;
  std::int64_t count_a = 0;
  std::int64_t count_b = 0;
  [[nodiscard]] Relation relation() const noexcept {
    if (count_a == 0) return Relation::none_to_one;
    if (count_b == 0) return Relation::one_to_none;
    if (count_a == 1) return count_b == 1 ? Relation::one_to_one : Relation::one_to_many;
    return count_b == 1 ? Relation::many_to_one : Relation::many_to_many;
  }
};

/// The method, device and memory of a call.
struct CoclusterPlan {
  CoclusterMethod method = CoclusterMethod::components;
  std::string device = "cpu";
  int threads = 1;                  ///< number of host threads
  std::uint64_t memory = 0;         ///< bytes of host memory that were planned, result included
  std::uint64_t device_memory = 0;  ///< bytes of device memory, edges included
};

/// Members of both sides are numbered together: member i of A is i, member j of B is n_a + j. A group's label is its
/// smallest number, so that every group with a member of A is named by one of A.
struct VICINAL_API Cocluster {
  std::vector<std::int64_t> labels_a;  ///< [n_a]
  std::vector<std::int64_t> labels_b;  ///< [n_b]
  std::vector<CoclusterGroup> groups;  ///< by ascending label; members without an edge are groups of their own

  std::vector<std::int64_t> nonzeros;  ///< closure and products: number of ones in the matrix after each product
  CoclusterPlan plan;
  /// Time to compute the labels from the edges, or for closure and products from the matrix, which are already in the
  /// memory of the device that computes.
  double label_seconds = 0;

  /// The index in `groups` of the group with this label. Throws `invalid_argument` for a label that no group has. O(log
  /// groups).
  [[nodiscard]] std::int64_t group_of(std::int64_t label) const;
};

/// The connected components of a bipartite graph (clause 16), with the same labels for every method, thread count and
/// device. `components` takes O(edges) time up to a factor that stays below 4 in practice (lock-free union with path
/// halving), and 4 or 8 bytes per member in addition to the result. With n = n_a + n_b, `closure` takes two matrices of
/// n^2 / 8 bytes, the products three of 4 n^2 bytes. Throws `bad_data` naming the first edge with a negative or
/// non-finite weight or an id outside its side, `over_memory` before work begins, `cancelled`.
VICINAL_API Cocluster cocluster(const Context& ctx, const BipartiteEdges& edges, const CoclusterOptions& options = {});
/// As above, for a relation matrix [n_a, n_b] in host memory, whose nonzero elements are the weights of edges. Throws
/// `bad_data` naming row and column of an element that is negative or not finite, `over_memory`, `cancelled`.
VICINAL_API Cocluster cocluster(const Context& ctx, const TableView& relation, const CoclusterOptions& options = {});

/// Limits of a group's size; 0: no limit.
struct SplitOptions {
  std::int64_t max_members = 0;  ///< maximum number of members of both sides together
  std::int64_t max_steps = 0;    ///< maximum number of edges on the shortest path between two members
};

struct CoclusterSplit {
  Cocluster parts;                      ///< labels and groups after the split; plan and nonzeros are those of `found`
  std::vector<std::int64_t> cut_edges;  ///< numbers of the edges between different parts, ascending
  std::int64_t split_groups = 0;        ///< groups that were too large
};

/// Divides groups that are too large at edges of small weight; other groups stay as they are. A group is divided by
/// local moves under the constant Potts model (Traag, Van Dooren and Nesterov 2011). The resolution of the model is the
/// density of the group; it is doubled until the group is divided. So parts have a higher density than the group. Parts
/// that are too large are divided again. Every part is connected. Without weights, or if all weights of a group are 0,
/// each edge has the weight 1; the weights of equal edges are added. Each group is divided by one thread, and groups
/// are divided in parallel, with the same result for every thread count. O(edges log members) per division; with
/// `max_steps` O(members edges) in the worst case. Throws `invalid_argument` for limits below 0 and for labels that do
/// not belong to these edges, what `cocluster` throws for edges, `over_memory` and `cancelled`.
VICINAL_API CoclusterSplit split_groups(const Context& ctx, const BipartiteEdges& edges, const Cocluster& found,
                                        const SplitOptions& options);

/// The plan of `cocluster` without running it: method, device and bytes of memory. Throws as `cocluster` does for
/// options.
VICINAL_API CoclusterPlan plan_cocluster(const Context& ctx, const BipartiteEdges& edges,
                                         const CoclusterOptions& options = {});

}  // namespace vicinal

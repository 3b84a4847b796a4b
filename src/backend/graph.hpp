// Bipartite graphs: what a backend does with their edges. Members of both sides are numbered together (contract clause
// 16).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/memory_need.hpp"
#include "vicinal/cocluster.hpp"
#include "vicinal/context.hpp"

namespace vicinal::kernels {

struct GraphTask {
  const BipartiteEdges* edges = nullptr;  ///< ids and weights not checked yet; at least one member
  CoclusterMethod method = CoclusterMethod::components;

  [[nodiscard]] std::int64_t members() const noexcept { return edges->n_a() + edges->n_b(); }
};

struct GraphLabels {
  std::span<std::int64_t> a;           ///< [n_a]: the smallest member's number
  std::span<std::int64_t> b;           ///< [n_b]
  std::vector<std::int64_t> nonzeros;  ///< after each product
  double seconds = 0;
};

/// Bytes of n rows of so many bytes each, or a number above every limit: a matrix's may exceed 64 bits.
constexpr std::uint64_t matrix_bytes(std::uint64_t n, std::uint64_t row_bytes) {
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 62;
  return n != 0 && row_bytes > kBeyond / n ? kBeyond : n * row_bytes;
}

class GraphBackend {
 public:
  GraphBackend() = default;
  GraphBackend(const GraphBackend&) = delete;
  GraphBackend& operator=(const GraphBackend&) = delete;
  virtual ~GraphBackend() = default;

  /// What `label` takes beyond edges and result. Throws `over_memory` where a device has no room.
  [[nodiscard]] virtual MemoryNeed bytes(const Context& ctx, const GraphTask& task) const = 0;
  /// Throws `bad_data` naming the first edge with an id outside its side.
  virtual void label(const Context& ctx, const GraphTask& task, GraphLabels& labels) const = 0;
};

/// Throws `bad_data` for the edge, if one of its ids is outside its side.
void require_in_range(const BipartiteEdges& edges, std::int64_t edge);

}  // namespace vicinal::kernels

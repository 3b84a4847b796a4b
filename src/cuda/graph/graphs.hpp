// Labels of a bipartite graph's members on the device (contract clause 16): what its methods share.
#pragma once

#include "cuda/base/session.hpp"
#include "plugin/abi/graph.hpp"

namespace vicinal::cuda::graph {

/// Uploads the edges, labels the members, hands the labels over.
void label_members(Session& session, const Host& host, plugin::Bipartite& task);
/// Bytes of device memory it takes. Throws `over_memory` where they are not to be had.
std::uint64_t graph_bytes(const Session& session, const plugin::Bipartite& task);

/// Edges in device memory, not checked yet.
struct DeviceEdges {
  const void* a = nullptr;
  const void* b = nullptr;
  bool wide = false;
  std::int64_t count = 0;
  std::int64_t n_a = 0;
  std::int64_t n_b = 0;
  unsigned long long* wrong = nullptr;  ///< [1] the first edge with an id outside its side; all bits set: none

  [[nodiscard]] std::int64_t members() const { return n_a + n_b; }
};

/// An edge's members as numbers of both sides together; what is outside its side is told to `wrong`.
template <class Id>
struct EdgeReader {
  const Id* a;
  const Id* b;
  std::uint64_t n_a;
  std::uint64_t n_b;
  unsigned long long* wrong;

  explicit EdgeReader(const DeviceEdges& edges)
      : a(static_cast<const Id*>(edges.a)),
        b(static_cast<const Id*>(edges.b)),
        n_a(static_cast<std::uint64_t>(edges.n_a)),
        n_b(static_cast<std::uint64_t>(edges.n_b)),
        wrong(edges.wrong) {}

  __device__ bool read(std::int64_t e, std::uint64_t& x, std::uint64_t& y) const {
    x = static_cast<std::uint64_t>(static_cast<std::int64_t>(__ldcs(a + e)));  // below 0: very large
    y = static_cast<std::uint64_t>(static_cast<std::int64_t>(__ldcs(b + e)));
    if (x >= n_a || y >= n_b) {
      atomicMin(wrong, static_cast<unsigned long long>(e));
      return false;
    }
    y += n_a;
    return true;
  }
};

/// Calls body(EdgeReader) for ids as wide as they are.
template <class Body>
void with_reader(const DeviceEdges& edges, const Body& body) {
  // 64 bits are `long long` to __ldcs.
  edges.wide ? body(EdgeReader<long long>(edges)) : body(EdgeReader<int>(edges));
}

/// Time on the device between two points of the stream.
class StreamTimer {
 public:
  explicit StreamTimer(cudaStream_t stream) : stream_(stream) {
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "create an event");
    check(cudaEventRecord(events_[0], stream_), "record an event");
  }
  ~StreamTimer() {
    for (cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  /// Waits for the stream.
  double seconds() {
    check(cudaEventRecord(events_[1], stream_), "record an event");
    check(cudaEventSynchronize(events_[1]), "label the members");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "read an event");
    return milliseconds / 1000.0;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t events_[2] = {};
};

/// Where each method leaves the label of each member: its smallest member's number.
struct DeviceLabels {
  Buffer<std::uint32_t> narrow;  ///< [n], or
  Buffer<std::uint64_t> wide;    ///< [n], where 32 bits are too few
};

/// components.cu: union-find. Labels are not to be looked at where an edge is wrong.
std::uint64_t component_bytes(std::int64_t members);
void label_components(const Engine& engine, const Host& host, const DeviceEdges& edges, DeviceLabels& labels,
                      plugin::Bipartite& task);
/// closure.cu: squares of a matrix of bits.
std::uint64_t closure_bytes(std::int64_t members);
void label_by_bits(const Engine& engine, const Host& host, const DeviceEdges& edges, DeviceLabels& labels,
                   plugin::Bipartite& task);
/// papers/closure_product.cu: products of a matrix of integers.
std::uint64_t product_bytes(std::int64_t members);
void label_by_products(const Engine& engine, const Host& host, const DeviceEdges& edges, DeviceLabels& labels,
                       plugin::Bipartite& task);

}  // namespace vicinal::cuda::graph

// See overlap.hpp: layers up, in parts where both do not fit; candidates in batches; pairs down.
#include <bit>
#include <vector>

#include "cuda/base/memory.hpp"
#include "cuda/graph/graphs.hpp"
#include "cuda/overlap/overlap.hpp"

namespace vicinal::cuda::overlap {
namespace {

constexpr std::int64_t kCopied = std::int64_t{64} << 20;   // bytes between two looks at the cancel token
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 28;  // candidates
constexpr std::int64_t kMaxFeatures = std::int64_t{1} << 30;
constexpr std::uint64_t kPairBytes = 2 * sizeof(unsigned long long) + sizeof(Overlap) + 1;  // and scratch of a sort

template <class T>
void copy_up(const Engine& engine, const Host& host, T* to, const T* from, std::int64_t count) {
  constexpr std::int64_t kPart = kCopied / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t begin = 0; begin < count; begin += kPart) {
    to_device(engine, to + begin, from + begin, std::min(kPart, count - begin));
    host.check_cancelled();
  }
}

/// First point of a feature, or the end of all.
std::int64_t first_point(const plugin::PolygonLayer& layer, std::int64_t feature) {
  const std::int64_t run = layer.first_run[feature];
  return run < layer.first_run[layer.features] ? layer.runs[run].first : layer.point_count;
}

std::uint64_t batch_bytes(std::int64_t pairs) {
  return static_cast<std::uint64_t>(pairs) * kPairBytes + decide_bytes(pairs) + (std::uint64_t{1} << 20);
}

std::uint64_t bytes_of_b(const plugin::PolygonLayer& layer, const FeatureRange& range) {
  return DeviceLayer::bytes(layer, range) + DeviceBoxTree::bytes(range.size());
}

std::uint64_t bytes_of_a(const plugin::PolygonLayer& layer, const FeatureRange& range) {
  return DeviceLayer::bytes(layer, range) + static_cast<std::uint64_t>(range.size() + 1) * sizeof(std::int64_t);
}

/// The most features from `first` on whose bytes are within `room`. Throws `over_memory` where that is not even one.
template <class Bytes>
FeatureRange part_from(std::int64_t first, std::int64_t features, std::uint64_t room, const Bytes& bytes) {
  std::int64_t least = first;
  std::int64_t most = std::min(features, first + kMaxFeatures);
  while (least < most) {
    const std::int64_t middle = most - (most - least) / 2;
    if (bytes({first, middle}) <= room) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  if (least == first) refuse_memory(bytes({first, first + 1}), room);
  return {first, least};
}

template <class Bytes>
std::vector<FeatureRange> parts_of(std::int64_t features, std::uint64_t room, const Bytes& bytes) {
  std::vector<FeatureRange> parts;
  for (std::int64_t first = 0; first < features; first = parts.back().last) {
    parts.push_back(part_from(first, features, room, bytes));
  }
  return parts;
}

class Joiner {
 public:
  Joiner(Session& session, const Host& host, plugin::OverlapJoin& task)
      : engine_(session.engine), host_(host), task_(task) {
    const std::uint64_t left = left_of_limit(session);
    // A batch has room for what a single feature may meet.
    parts_b_ = parts_of(task.b.features, left / 2, [&](const FeatureRange& range) {
      return bytes_of_b(task.b, range) + batch_bytes(range.size());
    });
    parts_a_ =
        parts_of(task.a.features, left / 4, [&](const FeatureRange& range) { return bytes_of_a(task.a, range); });
    batch_room_ = left / 4;
  }

  void join() {
    for (const FeatureRange& part_b : parts_b_) {
      const DeviceLayer b(engine_, host_, task_.b, part_b);
      engine_.synchronize();
      graph::StreamTimer timer(engine_.stream);
      const DeviceBoxTree tree(engine_, b.view());
      task_.seconds += timer.seconds();
      for (const FeatureRange& part_a : parts_a_) {
        const DeviceLayer a(engine_, host_, task_.a, part_a);
        engine_.synchronize();
        join_parts(a.view(), b.view(), tree.view());
      }
    }
  }

 private:
  void join_parts(const LayerView& a, const LayerView& b, const BoxTreeView& tree) {
    const Buffer<std::int64_t> sums(engine_, a.features + 1);
    graph::StreamTimer timer(engine_.stream);
    sum_candidates(engine_, host_, tree, a, sums.data());
    task_.seconds += timer.seconds();
    for (FeatureRange batch; batch.first < a.features; batch.first = batch.last) {
      const std::int64_t before = sum_at(sums, batch.first);
      batch.last = end_of_batch(sums, a.features, batch.first, before + batch_size(b.features));
      const std::int64_t count = sum_at(sums, batch.last) - before;
      if (count > 0) decide(a, b, tree, batch, sums.data(), count);
      host_.progress("overlaps", static_cast<double>(a.first + batch.last) / static_cast<double>(task_.a.features));
    }
  }

  /// PairTask: what there is room for, at least as many as one feature may have.
  [[nodiscard]] std::int64_t batch_size(std::int64_t features_b) const {
    const std::uint64_t fixed = batch_bytes(0);
    const std::uint64_t each = (batch_bytes(1 << 20) - fixed) >> 20;
    const std::uint64_t fit = batch_room_ > fixed ? (batch_room_ - fixed) / each : 0;
    return std::max(features_b, std::min(kMaxBatch, static_cast<std::int64_t>(fit)));
  }

  std::int64_t sum_at(const Buffer<std::int64_t>& sums, std::int64_t i) const {
    std::int64_t sum = 0;
    to_host(engine_, &sum, sums.data() + i, 1);
    engine_.synchronize();
    return sum;
  }

  /// The last place whose sum is at most `most`: a search of the device's ascending sums by the host.
  std::int64_t end_of_batch(const Buffer<std::int64_t>& sums, std::int64_t features, std::int64_t first,
                            std::int64_t most) const {
    if (sum_at(sums, features) <= most) return features;
    std::int64_t least = first + 1;  // one feature always fits
    std::int64_t largest = features - 1;
    while (least < largest) {
      const std::int64_t middle = largest - (largest - least) / 2;
      if (sum_at(sums, middle) <= most) {
        least = middle;
      } else {
        largest = middle - 1;
      }
    }
    return least;
  }

  void decide(const LayerView& a, const LayerView& b, const BoxTreeView& tree, const FeatureRange& batch,
              const std::int64_t* sums, std::int64_t count) {
    Overlap* to = nullptr;
    if (task_.make_room(task_.user, count, &to) != 0) throw HostFailure{};
    const int bits = std::bit_width(static_cast<std::uint64_t>(b.features));
    Buffer<unsigned long long> keys[2] = {{engine_, count}, {engine_, count}};
    const Buffer<Overlap> found(engine_, count);
    found.zero();  // what lies between the members of a pair is copied, too
    graph::StreamTimer timer(engine_.stream);
    list_candidates(engine_, host_, tree, a, batch, sums, bits, keys, count);
    decide_pairs(engine_, host_, a, b, {keys[0].data(), count, bits, batch.first, task_.widths != 0, found.data()});
    task_.seconds += timer.seconds();
    constexpr std::int64_t kPart = kCopied / static_cast<std::int64_t>(sizeof(Overlap));
    for (std::int64_t begin = 0; begin < count; begin += kPart) {
      to_host(engine_, to + begin, found.data() + begin, std::min(kPart, count - begin));
      engine_.synchronize();
      host_.check_cancelled();
    }
  }

  const Engine& engine_;
  const Host& host_;
  plugin::OverlapJoin& task_;
  std::vector<FeatureRange> parts_a_;
  std::vector<FeatureRange> parts_b_;
  std::uint64_t batch_room_ = 0;
};

}  // namespace

DeviceLayer::DeviceLayer(const Engine& engine, const Host& host, const plugin::PolygonLayer& layer,
                         const FeatureRange& range) {
  const std::int64_t points = first_point(layer, range.first);
  const std::int64_t runs = layer.first_run[range.first];
  points_ = Buffer<geo::Point>(engine, first_point(layer, range.last) - points);
  runs_ = Buffer<geo::Run>(engine, layer.first_run[range.last] - runs);
  first_run_ = Buffer<std::int64_t>(engine, range.size() + 1);
  boxes_ = Buffer<geo::Box>(engine, range.size());
  areas_ = Buffer<double>(engine, range.size());
  copy_up(engine, host, points_.data(), layer.points + points, points_.size());
  copy_up(engine, host, runs_.data(), layer.runs + runs, runs_.size());
  copy_up(engine, host, first_run_.data(), layer.first_run + range.first, first_run_.size());
  copy_up(engine, host, boxes_.data(), layer.boxes + range.first, boxes_.size());
  copy_up(engine, host, areas_.data(), layer.areas + range.first, areas_.size());
  view_ = {points_.data() - points, runs_.data() - runs, first_run_.data(), boxes_.data(),
           areas_.data(),           range.size(),        range.first};
}

std::uint64_t DeviceLayer::bytes(const plugin::PolygonLayer& layer, const FeatureRange& range) {
  const auto points = static_cast<std::uint64_t>(first_point(layer, range.last) - first_point(layer, range.first));
  const auto runs = static_cast<std::uint64_t>(layer.first_run[range.last] - layer.first_run[range.first]);
  const auto features = static_cast<std::uint64_t>(range.size());
  return points * sizeof(geo::Point) + runs * sizeof(geo::Run) + (features + 1) * sizeof(std::int64_t) +
         features * (sizeof(geo::Box) + sizeof(double));
}

void join_layers(Session& session, const Host& host, plugin::OverlapJoin& task) {
  Joiner(session, host, task).join();
}

}  // namespace vicinal::cuda::overlap

// See empty_clusters.hpp. A heap gives the order's beginning: how far it is followed is not known before, as some
// donors may be exhausted. Ranks send the beginnings of their orders block by block, of which each rank takes the same
// rows.
#include "ops/kmeans/empty_clusters.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/common/together.hpp"

namespace vicinal::ops {
namespace {

/// A row that may leave its cluster; none, at the end of a rank's order, if the key is 0.
struct FarRow {
  double key = 0;
  std::int64_t row = 0;  ///< among those of all ranks
  std::int64_t label = 0;
};

bool is_farther(const FarRow& a, const FarRow& b) {
  return a.key != b.key ? a.key > b.key : a.row < b.row;
}

/// The rank's own rows whose key is above 0, in order.
class OwnOrder {
 private:
  [[nodiscard]] FarRow at(std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row);
    return {keys_[i], first_ + row, labels_[i]};
  }
  [[nodiscard]] auto later() const {
    return [this](std::int64_t a, std::int64_t b) { return is_farther(at(b), at(a)); };
  }

 public:
  OwnOrder(kernels::Lloyd& lloyd, const RankRows& rows) : first_(rows.first) {
    const auto n = static_cast<std::size_t>(rows.task.table.rows());
    keys_.resize(n);
    labels_.resize(n);
    lloyd.keys(keys_);
    lloyd.labels(labels_);
    heap_.resize(n);
    std::iota(heap_.begin(), heap_.end(), 0);
    std::make_heap(heap_.begin(), heap_.end(), later());
  }
  FarRow next() {
    if (heap_.empty()) return {};
    std::pop_heap(heap_.begin(), heap_.end(), later());
    const FarRow row = at(heap_.back());
    heap_.pop_back();
    return row;
  }

 private:
  std::int64_t first_;
  std::vector<double> keys_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int64_t> heap_;
};

/// The rows of all ranks, in order. `next` is called by all ranks alike.
class SharedOrder {
 public:
  SharedOrder(OwnOrder& own, Communicator& ranks, std::size_t block)
      : own_(own), ranks_(ranks), block_(block), streams_(static_cast<std::size_t>(ranks.size())) {}

  FarRow next() {
    const auto is_read = [&](const Stream& stream) { return !stream.ended && stream.next == stream.rows.size(); };
    if (std::any_of(streams_.begin(), streams_.end(), is_read)) fetch();
    Stream* first = nullptr;
    for (Stream& stream : streams_) {
      if (stream.ended) continue;
      if (first == nullptr || is_farther(stream.rows[stream.next], first->rows[first->next])) first = &stream;
    }
    if (first == nullptr) return {};
    const FarRow row = first->rows[first->next++];
    if (first->next < first->rows.size() && !(first->rows[first->next].key > 0)) first->ended = true;
    return row;
  }

 private:
  struct Stream {
    std::vector<FarRow> rows;  // a block
    std::size_t next = 0;
    bool ended = false;
  };

  /// The next blocks of those ranks whose blocks were read to their ends.
  void fetch() {
    std::vector<std::int64_t> bytes;
    std::size_t count = 0;
    for (const Stream& stream : streams_) {
      const bool sends = !stream.ended && stream.next == stream.rows.size();
      bytes.push_back(sends ? static_cast<std::int64_t>(block_ * sizeof(FarRow)) : 0);
      count += sends ? block_ : 0;
    }
    std::vector<FarRow> sent;
    if (bytes[static_cast<std::size_t>(ranks_.rank())] > 0) {
      for (std::size_t i = 0; i < block_; ++i) sent.push_back(own_.next());
    }
    std::vector<FarRow> all(count);
    ranks_.all_gather(std::as_bytes(std::span(sent)), bytes, std::as_writable_bytes(std::span(all)));
    const FarRow* from = all.data();
    for (std::size_t r = 0; r < streams_.size(); ++r) {
      if (bytes[r] == 0) continue;
      Stream& stream = streams_[r];
      stream.rows.assign(from, from + block_);
      from += block_;
      stream.next = 0;
      stream.ended = !(stream.rows.front().key > 0);
    }
  }

  OwnOrder& own_;
  Communicator& ranks_;
  std::size_t block_;
  std::vector<Stream> streams_;
};

}  // namespace

bool fill_empty(kernels::Lloyd& lloyd, const RankRows& rows, std::span<const std::int32_t> empty) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(rows.task.clusters));
  lloyd.sizes(sizes);
  OwnOrder own(lloyd, rows);
  SharedOrder order(own, rows.ranks, empty.size() + 1);
  std::size_t filled = 0;
  while (filled < empty.size()) {
    const FarRow far = order.next();
    if (!(far.key > 0)) break;
    std::int64_t& donor = sizes[static_cast<std::size_t>(far.label)];
    if (donor == 1) continue;
    --donor;
    lloyd.move(far.row, empty[filled++]);
  }
  return filled > 0;
}

}  // namespace vicinal::ops

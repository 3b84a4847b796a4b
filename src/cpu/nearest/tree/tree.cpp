// Building of kd-trees. Every node is split as a sample sort splits: seven splits (three nested binary ones, each
// across the widest side of its part, at the median of a sample) deal its points into eight children in one pass
// without branches. The pass is stable and its chunks are fixed by the number of points, so the tree is the same
// whatever the number of threads. Levels of large nodes are split by all workers together; what has become small is a
// task of one worker. O(n d log n) time; two copies of the points besides the tree.
#include "cpu/nearest/tree/tree.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/parallel.hpp"
#include "core/table_access.hpp"

namespace vicinal::cpu {
namespace {

constexpr std::int64_t kLeafPoints = 40;      // a leaf has at most twice as many, unless its points are all equal
constexpr std::int64_t kSmallLeaf = 20;       // fewer points are not split
constexpr std::int64_t kPointsALeaf = 12;     // on average at least: bounds the memory
constexpr std::int64_t kTaskPoints = 32768;   // nodes up to this are built by one worker
constexpr std::int64_t kPointsDealt = 16384;  // dealt by one worker at a time in larger nodes
constexpr std::int64_t kSplitSample = 512;
constexpr std::int64_t kSmallSample = 128;  // of parts that one worker builds

// Binary splits that bring `points` down to the size of a leaf.
int splits_wanted(std::int64_t points) {
  int splits = 0;
  while ((points >> splits) > kLeafPoints) ++splits;
  return splits;
}

// The middle of [low, high), not high itself: both sides of a split there hold something.
template <class T>
T middle_of(T low, T high) {
  const double middle = static_cast<double>(low) / 2 + static_cast<double>(high) / 2;
  const T rounded = static_cast<T>(middle);
  return rounded >= low && rounded < high ? rounded : low;
}

// Three nested splits, numbered like a heap from 1: a point goes right where its value is larger.
template <class T>
struct Splits {
  std::array<std::int64_t, kTreeWidth> column{};
  std::array<T, kTreeWidth> value;

  Splits() { value.fill(std::numeric_limits<T>::max()); }  // nothing goes right
  [[nodiscard]] std::int64_t child_of(const T* point) const noexcept {
    std::size_t i = 1;
    for (int level = 0; level < 3; ++level) i = 2 * i + static_cast<std::size_t>(point[column[i]] > value[i]);
    return static_cast<std::int64_t>(i) - kTreeWidth;
  }
};

// The smallest box around the points it was shown.
template <class T>
class Box {
 public:
  explicit Box(std::int64_t d) : low(static_cast<std::size_t>(d)), high(static_cast<std::size_t>(d)) {}

  void start(const T* point) {
    std::copy_n(point, low.size(), low.begin());
    std::copy_n(point, low.size(), high.begin());
  }
  void include(const T* point) {
    for (std::size_t j = 0; j < low.size(); ++j) {
      low[j] = point[j] < low[j] ? point[j] : low[j];
      high[j] = point[j] > high[j] ? point[j] : high[j];
    }
  }
  /// The column in which it is widest, or -1 when it is one point.
  [[nodiscard]] std::int64_t widest() const {
    double width = 0;
    std::int64_t column = -1;
    for (std::size_t j = 0; j < low.size(); ++j) {
      const double side = static_cast<double>(high[j]) - static_cast<double>(low[j]);
      if (!(side > width)) continue;
      width = side;
      column = static_cast<std::int64_t>(j);
    }
    return column;
  }

  std::vector<T> low;
  std::vector<T> high;
};

// Chooses splits from a sample of points.
template <class T>
class Chooser {
 public:
  explicit Chooser(std::int64_t d) : box_(d) {}

  std::vector<const T*> sample;

  /// False when the sample's points are all equal.
  bool choose(int levels, Splits<T>& splits) {
    return split(sample.data(), sample.data() + sample.size(), 1, levels, splits);
  }

 private:
  bool split(const T** begin, const T** end, std::size_t at, int levels, Splits<T>& splits) {
    if (levels == 0 || end - begin < 2) return false;
    box_.start(*begin);
    for (const T** p = begin + 1; p < end; ++p) box_.include(*p);
    const std::int64_t column = box_.widest();
    if (column < 0) return false;
    const T low = box_.low[static_cast<std::size_t>(column)];
    const T** middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, [column](const T* a, const T* b) { return a[column] < b[column]; });
    T value = (*middle)[column];
    if (value > low) {  // the largest value below the median: what equals the median goes right
      T below = low;
      for (const T** p = begin; p < middle; ++p) {
        if ((*p)[column] < value && (*p)[column] > below) below = (*p)[column];
      }
      value = below;
    }
    splits.column[at] = column;
    splits.value[at] = value;
    const T** right = std::partition(begin, end, [column, value](const T* p) { return !(p[column] > value); });
    split(begin, right, 2 * at, levels - 1, splits);
    split(right, end, 2 * at + 1, levels - 1, splits);
    return true;
  }

  Box<T> box_;
};

[[noreturn]] void refuse_shape(const char* why) {
  throw Error(ErrorCode::bad_data, std::string("its tree ") + why);
}

Element element_of(DType dtype) {
  if (dtype == DType::uint8) return Element::uint8;
  return dtype == DType::float64 ? Element::float64 : Element::float32;
}

}  // namespace

template <class T>
class TreeBuilder {
 public:
  TreeBuilder(const Context& ctx, const kernels::Prepared& index)
      : ctx_(ctx), index_(index), n_(index.distinct_rows()), d_(index.table.cols()), tree_(new Tree) {
    tree_->element_ = element_of(index.table.dtype());
    tree_->element_size_ = sizeof(T);
    tree_->d_ = d_;
    const TableView& table = index.table;
    copies_ = core::is_row_contiguous(table) && table.dtype() != DType::float16 && table.dtype() != DType::bfloat16;
  }

  std::shared_ptr<const Tree> build() {
    for (int side : {0, 1}) {
      points_[side].reserve(n_ * d_);
      rows_[side].reserve(n_);
    }
    child_.reserve(n_);
    core::parallel_for(ctx_, (n_ + kPointsDealt - 1) / kPointsDealt, [&](std::int64_t chunk, int /*worker*/) {
      const std::int64_t end = std::min(n_, (chunk + 1) * kPointsDealt);
      for (std::int64_t i = chunk * kPointsDealt; i < end; ++i) rows_[0][i] = i;
      read_points(rows_[0].data() + chunk * kPointsDealt, end - chunk * kPointsDealt,
                  points_[0].data() + chunk * kPointsDealt * d_);
    });
    build_shape();
    points_[1] = {};
    rows_[0] = {};
    rows_[1] = {};
    child_ = {};
    connect();
    fill([&](std::int64_t first, std::int64_t /*count*/, std::vector<T>&) { return points_[0].data() + first * d_; });
    return tree_;
  }

  std::shared_ptr<const Tree> restore(kernels::TreeShape shape) {
    tree_->shape_ = std::move(shape);
    const auto& order = tree_->shape_.order;
    if (static_cast<std::int64_t>(order.size()) != n_) refuse_shape("is of another number of rows");
    std::vector<bool> seen(static_cast<std::size_t>(n_));
    for (const std::int64_t row : order) {
      if (row < 0 || row >= n_ || seen[static_cast<std::size_t>(row)]) refuse_shape("does not hold each row once");
      seen[static_cast<std::size_t>(row)] = true;
    }
    connect();
    fill([&](std::int64_t first, std::int64_t count, std::vector<T>& scratch) {
      scratch.resize(static_cast<std::size_t>(count * d_));
      read_points(order.data() + first, count, scratch.data());
      return scratch.data();
    });
    return tree_;
  }

 private:
  // Points [begin, end) of one of the two copies, still to be split `wanted` times.
  struct Part {
    std::int64_t begin;
    std::int64_t end;
    int side;
    int wanted;
    int depth;
    [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
    /// Full nodes below: what does not divide by three is split first.
    [[nodiscard]] int splits_now() const noexcept { return wanted % 3 == 0 ? 3 : wanted % 3; }
  };
  using Counts = std::array<std::int64_t, kTreeWidth>;

  // What one worker makes of a part, or a large node: its piece of the preorder.
  struct Piece {
    Part part;
    std::vector<std::int64_t> nodes;
    std::vector<std::int64_t> leaf_sizes;
    std::vector<std::size_t> children;  // of a large node: pieces
  };

  // Distinct rows as points of the tree's element type.
  void read_points(const std::int64_t* distinct, std::int64_t count, T* out) const {
    const TableView& table = index_.table;
    const auto row_of = [&](std::int64_t i) { return index_.grouped() ? index_.distinct[i] : i; };
    if (copies_) {
      const auto* data = static_cast<const std::byte*>(table.data());
      const auto stride = table.row_stride() * static_cast<std::int64_t>(sizeof(T));
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(out + i * d_, data + row_of(distinct[i]) * stride, static_cast<std::size_t>(d_) * sizeof(T));
      }
      return;
    }
    std::vector<double> wide(static_cast<std::size_t>(d_));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = row_of(distinct[i]);
      core::widen_rows(table, row, row + 1, wide.data());
      for (std::int64_t j = 0; j < d_; ++j) out[i * d_ + j] = static_cast<T>(wide[j]);  // exact: see element_of
    }
  }

  [[nodiscard]] bool is_leaf(const Part& part) const {
    return part.size() <= kSmallLeaf || part.wanted == 0 || part.depth >= Tree::kMaxDepth;
  }

  // The splits of a part; false when its points are all equal.
  bool choose_splits(const Part& part, Chooser<T>& chooser, Splits<T>& splits) const {
    const T* points = points_[part.side].data() + part.begin * d_;
    const std::int64_t count = std::min(part.size(), part.size() > kTaskPoints ? kSplitSample : kSmallSample);
    chooser.sample.resize(static_cast<std::size_t>(count));
    // One point of each of `count` equal stretches, at a place in it that no regular order of the rows can meet.
    std::uint64_t random = 0x9E3779B97F4A7C15U;
    for (std::int64_t i = 0; i < count; ++i) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::int64_t first = i * part.size() / count;
      const auto stretch = static_cast<std::uint64_t>((i + 1) * part.size() / count - first);
      chooser.sample[i] = points + (first + static_cast<std::int64_t>((random >> 33) % stretch)) * d_;
    }
    if (chooser.choose(part.splits_now(), splits)) return true;
    // A sample of equal points: the widest side of the box of all points is halved.
    Box<T> box(d_);
    box.start(points);
    for (std::int64_t i = 1; i < part.size(); ++i) {
      if (i % 65536 == 0) ctx_.check_cancelled();
      box.include(points + i * d_);
    }
    const std::int64_t column = box.widest();
    if (column < 0) return false;
    splits.column[1] = column;
    splits.value[1] = middle_of(box.low[static_cast<std::size_t>(column)], box.high[static_cast<std::size_t>(column)]);
    return true;
  }

  // Which child each of the points [begin, end) goes to, and how many go to each.
  void classify(const Part& part, std::int64_t begin, std::int64_t end, const Splits<T>& splits, Counts& counts) {
    const T* points = points_[part.side].data();
    counts.fill(0);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t child = splits.child_of(points + i * d_);
      child_[i] = static_cast<std::uint8_t>(child);
      ++counts[static_cast<std::size_t>(child)];
    }
  }

  // Moves the points [begin, end) to their children's places in the other copy; `to` is advanced.
  void deal(const Part& part, std::int64_t begin, std::int64_t end, Counts& to) {
    const T* from = points_[part.side].data();
    const std::int64_t* from_rows = rows_[part.side].data();
    T* out = points_[1 - part.side].data();
    std::int64_t* out_rows = rows_[1 - part.side].data();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = to[child_[i]]++;
      out_rows[place] = from_rows[i];
      for (std::int64_t j = 0; j < d_; ++j) out[place * d_ + j] = from[i * d_ + j];
    }
  }

  // The children that hold something, in order.
  static std::vector<Part> parts_of(const Part& part, const Counts& counts) {
    std::vector<Part> parts;
    std::int64_t begin = part.begin;
    for (const std::int64_t count : counts) {
      if (count == 0) continue;
      Part child{begin, begin + count, 1 - part.side, std::max(0, part.wanted - part.splits_now()), part.depth + 1};
      if (child.wanted == 0 && count > 2 * kLeafPoints) child.wanted = splits_wanted(count);
      parts.push_back(child);
      begin += count;
    }
    return parts;
  }

  void add_leaf(const Part& part, Piece& piece) {
    piece.nodes.push_back(0);
    piece.leaf_sizes.push_back(part.size());
    if (part.side == 0) return;
    std::copy_n(points_[1].data() + part.begin * d_, part.size() * d_, points_[0].data() + part.begin * d_);
    std::copy_n(rows_[1].data() + part.begin, part.size(), rows_[0].data() + part.begin);
  }

  // The whole tree below a part, by one worker.
  void build_piece(Piece& piece) {
    Chooser<T> chooser(d_);
    std::vector<Part> open = {piece.part};
    const auto most_leaves = static_cast<std::size_t>(piece.part.size() / kPointsALeaf);
    while (!open.empty()) {
      const Part part = open.back();
      open.pop_back();
      Splits<T> splits;
      if (is_leaf(part) || piece.leaf_sizes.size() + open.size() >= most_leaves ||
          !choose_splits(part, chooser, splits)) {
        add_leaf(part, piece);
        continue;
      }
      ctx_.check_cancelled();
      Counts counts;
      classify(part, part.begin, part.end, splits, counts);
      const std::vector<Part> parts = parts_of(part, counts);
      Counts to;
      std::exclusive_scan(counts.begin(), counts.end(), to.begin(), part.begin);
      deal(part, part.begin, part.end, to);
      piece.nodes.push_back(static_cast<std::int64_t>(parts.size()));
      open.insert(open.end(), parts.rbegin(), parts.rend());
    }
  }

  // One level of large nodes: all workers deal the chunks of all of them. Returns the large ones among their children.
  std::vector<std::size_t> split_level(std::vector<Piece>& pieces, const std::vector<std::size_t>& level) {
    struct Work {
      Splits<T> splits;
      bool equal = false;
      std::vector<Counts> counts;  // of each chunk; then where its points go
    };
    struct Chunk {
      std::size_t node;
      std::int64_t number;
    };
    std::vector<Work> work(level.size());
    core::parallel_for(ctx_, static_cast<std::int64_t>(level.size()), [&](std::int64_t i, int /*worker*/) {
      Chooser<T> chooser(d_);
      Work& mine = work[static_cast<std::size_t>(i)];
      const Part& part = pieces[level[static_cast<std::size_t>(i)]].part;
      mine.equal = part.depth >= Tree::kMaxDepth || !choose_splits(part, chooser, mine.splits);
    });
    std::vector<Chunk> chunks;
    for (std::size_t i = 0; i < level.size(); ++i) {
      if (work[i].equal) continue;
      const std::int64_t count = (pieces[level[i]].part.size() + kPointsDealt - 1) / kPointsDealt;
      work[i].counts.resize(static_cast<std::size_t>(count));
      for (std::int64_t c = 0; c < count; ++c) chunks.push_back({i, c});
    }
    const auto each_chunk = [&](auto body) {
      core::parallel_for(ctx_, static_cast<std::int64_t>(chunks.size()), [&](std::int64_t c, int /*worker*/) {
        const Chunk& chunk = chunks[static_cast<std::size_t>(c)];
        const Part& part = pieces[level[chunk.node]].part;
        const std::int64_t begin = part.begin + chunk.number * kPointsDealt;
        Work& mine = work[chunk.node];
        body(part, begin, std::min(part.end, begin + kPointsDealt), mine,
             mine.counts[static_cast<std::size_t>(chunk.number)]);
      });
    };
    each_chunk([&](const Part& part, std::int64_t begin, std::int64_t end, Work& mine, Counts& counts) {
      classify(part, begin, end, mine.splits, counts);
    });
    std::vector<std::size_t> large;
    for (std::size_t i = 0; i < level.size(); ++i) {
      const Part part = pieces[level[i]].part;
      Counts totals{};
      std::int64_t place = part.begin;
      for (std::size_t child = 0; child < totals.size(); ++child) {
        for (Counts& counts : work[i].counts) {
          totals[child] += counts[child];
          counts[child] = std::exchange(place, place + counts[child]);
        }
      }
      if (work[i].equal) {
        add_leaf(part, pieces[level[i]]);
        continue;
      }
      const std::vector<Part> parts = parts_of(part, totals);
      pieces[level[i]].nodes.push_back(static_cast<std::int64_t>(parts.size()));
      for (const Part& child : parts) {
        pieces[level[i]].children.push_back(pieces.size());
        if (child.size() > kTaskPoints) large.push_back(pieces.size());
        pieces.push_back({child, {}, {}, {}});
      }
    }
    each_chunk(
        [&](const Part& part, std::int64_t begin, std::int64_t end, Work&, Counts& to) { deal(part, begin, end, to); });
    return large;
  }

  // Preorder of a piece and all below it.
  void append(const std::vector<Piece>& pieces, std::size_t i) {
    const Piece& piece = pieces[i];
    auto& shape = tree_->shape_;
    shape.nodes.insert(shape.nodes.end(), piece.nodes.begin(), piece.nodes.end());
    shape.leaf_sizes.insert(shape.leaf_sizes.end(), piece.leaf_sizes.begin(), piece.leaf_sizes.end());
    for (const std::size_t child : piece.children) append(pieces, child);
  }

  void build_shape() {
    std::vector<Piece> pieces = {{{0, n_, 0, splits_wanted(n_), 0}, {}, {}, {}}};
    std::vector<std::size_t> level;
    if (n_ > kTaskPoints) level.push_back(0);
    while (!level.empty()) level = split_level(pieces, level);
    std::vector<std::size_t> small;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].nodes.empty()) small.push_back(i);
    }
    std::atomic<std::int64_t> done{0};
    core::parallel_for(ctx_, static_cast<std::int64_t>(small.size()), [&](std::int64_t i, int /*worker*/) {
      Piece& piece = pieces[small[static_cast<std::size_t>(i)]];
      build_piece(piece);
      const std::int64_t now = done.fetch_add(piece.part.size()) + piece.part.size();
      ctx_.report("tree", static_cast<double>(now) / static_cast<double>(n_));
    });
    append(pieces, 0);
    tree_->shape_.order.assign(rows_[0].data(), rows_[0].data() + n_);
  }

  // Nodes and leaves from the shape, which is checked.
  void connect() {
    const auto& [order, leaf_sizes, nodes] = tree_->shape_;
    struct Open {
      std::int64_t node;
      std::int64_t children;
      std::int64_t filled;
    };
    std::vector<Open> path;
    tree_->children_.resize(1);
    std::size_t at = 0;
    std::size_t leaf = 0;
    std::int64_t first = 0;
    do {
      if (at == nodes.size()) refuse_shape("ends early");
      const std::int64_t children = nodes[at++];
      if (children < 0 || children > kTreeWidth) refuse_shape("has a node with more than 8 children");
      std::int64_t place = 0;
      if (!path.empty()) place = Tree::child_of(path.back().node, path.back().filled++);
      if (children == 0) {
        if (leaf == leaf_sizes.size()) refuse_shape("has more leaves than sizes");
        const std::int64_t size = leaf_sizes[leaf++];
        if (size < 1 || size > n_ - first) refuse_shape("has a leaf of an impossible size");
        tree_->children_[static_cast<std::size_t>(place)] = {tree_->panels_, first, size};
        tree_->panels_ += (size + kTreeWidth - 1) / kTreeWidth;
        first += size;
      } else {
        if (path.size() > Tree::kMaxDepth) refuse_shape("is too deep");
        const std::int64_t node = tree_->nodes();
        tree_->children_[static_cast<std::size_t>(place)] = {node, 0, 0};
        tree_->children_.resize(tree_->children_.size() + kTreeWidth);
        tree_->lanes_.push_back(static_cast<std::uint8_t>((1U << children) - 1));
        tree_->node_points_.push_back(-first);
        path.push_back({node, children, 0});
      }
      for (; !path.empty() && path.back().filled == path.back().children; path.pop_back()) {
        tree_->node_points_[static_cast<std::size_t>(path.back().node)] += first;
      }
    } while (!path.empty());
    if (at != nodes.size()) refuse_shape("has nodes that hang in the air");
    if (leaf != leaf_sizes.size() || first != n_) refuse_shape("has leaves that do not add up to the rows");
  }

  // Points of the leaves, their boxes, and from those the boxes of the nodes. points_of(first, count, scratch) gives
  // points in the order of the leaves, row by row.
  template <class PointsOf>
  void fill(PointsOf points_of) {
    constexpr std::int64_t kNodesATask = 16;
    Tree& tree = *tree_;
    const std::int64_t box = 2 * kTreeWidth * d_;
    tree.points_.reserve(tree.panels() * kTreeWidth * d_ * static_cast<std::int64_t>(sizeof(T)));
    tree.boxes_.reserve(tree.nodes() * box * static_cast<std::int64_t>(sizeof(T)));
    T* boxes = reinterpret_cast<T*>(tree.boxes_.data());
    const auto put = [&](T* lane, const Box<T>& around) {
      for (std::int64_t j = 0; j < d_; ++j) {
        lane[j * 2 * kTreeWidth] = around.low[j];
        lane[j * 2 * kTreeWidth + kTreeWidth] = around.high[j];
      }
    };
    core::parallel_for(ctx_, (tree.nodes() + kNodesATask - 1) / kNodesATask, [&](std::int64_t task, int /*worker*/) {
      std::vector<T> scratch;
      Box<T> around(d_);
      for (std::int64_t i = task * kNodesATask; i < std::min(tree.nodes(), (task + 1) * kNodesATask); ++i) {
        std::fill_n(boxes + i * box, box, T{});
        for (std::int64_t lane = 0; lane < kTreeWidth; ++lane) {
          const Tree::Child& child = tree.child(Tree::child_of(i, lane));
          if (child.size == 0) continue;
          fill_leaf(child, points_of, scratch, around);
          put(boxes + i * box + lane, around);
        }
      }
    });
    Box<T> around(d_);
    if (tree.nodes() == 0) {
      std::vector<T> scratch;
      fill_leaf(tree.child(0), points_of, scratch, around);
    }
    for (std::int64_t i = tree.nodes() - 1; i >= 0; --i) {
      if (i % 1024 == 0) ctx_.check_cancelled();
      for (std::int64_t lane = 0; lane < kTreeWidth; ++lane) {
        const Tree::Child& child = tree.child(Tree::child_of(i, lane));
        if ((tree.lanes(i) >> lane & 1) == 0 || child.size > 0) continue;
        around_node(boxes + child.at * box, tree.lanes(child.at), around);
        put(boxes + i * box + lane, around);
      }
    }
    if (tree.nodes() > 0) around_node(boxes, tree.lanes(0), around);
    tree.bounds_.assign(around.low.begin(), around.low.end());
    tree.bounds_.insert(tree.bounds_.end(), around.high.begin(), around.high.end());
  }

  // The box around the children of a node.
  void around_node(const T* boxes, std::uint32_t lanes, Box<T>& around) {
    const int children = std::popcount(lanes);
    for (std::int64_t j = 0; j < d_; ++j, boxes += 2 * kTreeWidth) {
      around.low[j] = *std::min_element(boxes, boxes + children);
      around.high[j] = *std::max_element(boxes + kTreeWidth, boxes + kTreeWidth + children);
    }
  }

  // Writes a leaf's points column by column, zeros in the lanes that are left, and finds their box.
  template <class PointsOf>
  void fill_leaf(const Tree::Child& leaf, PointsOf& points_of, std::vector<T>& scratch, Box<T>& around) {
    const std::int64_t size = leaf.size;
    T* out = reinterpret_cast<T*>(tree_->points_.data()) + leaf.at * kTreeWidth * d_;
    constexpr std::int64_t kStep = 1024;  // a leaf of equal points may be of any size
    for (std::int64_t begin = 0; begin < size; begin += kStep) {
      if (begin > 0) ctx_.check_cancelled();
      const std::int64_t count = std::min(kStep, size - begin);
      const T* points = points_of(leaf.first + begin, count, scratch);
      if (begin == 0) around.start(points);
      for (std::int64_t i = 0; i < count; ++i, points += d_) {
        T* lane = out + (begin + i) / kTreeWidth * kTreeWidth * d_ + i % kTreeWidth;
        for (std::int64_t j = 0; j < d_; ++j) lane[j * kTreeWidth] = points[j];
        around.include(points);
      }
    }
    for (std::int64_t i = size; i % kTreeWidth != 0; ++i) {
      for (std::int64_t j = 0; j < d_; ++j) out[(i / kTreeWidth * d_ + j) * kTreeWidth + i % kTreeWidth] = T{};
    }
  }

  const Context& ctx_;
  const kernels::Prepared& index_;
  std::int64_t n_;
  std::int64_t d_;
  std::shared_ptr<Tree> tree_;
  bool copies_;  // points are read as they lie
  core::AlignedArray<T> points_[2];
  core::AlignedArray<std::int64_t> rows_[2];
  core::AlignedArray<std::uint8_t> child_;
};

namespace {

template <class Use>
std::shared_ptr<const Tree> with_builder(const Context& ctx, const kernels::Prepared& index, Use use) {
  switch (element_of(index.table.dtype())) {
    case Element::uint8:
      return use(TreeBuilder<std::uint8_t>(ctx, index));
    case Element::float32:
      return use(TreeBuilder<float>(ctx, index));
    case Element::float64:
      break;
  }
  return use(TreeBuilder<double>(ctx, index));
}

}  // namespace

std::shared_ptr<const Tree> Tree::build(const Context& ctx, const kernels::Prepared& index) {
  return with_builder(ctx, index, [](auto builder) { return builder.build(); });
}

std::shared_ptr<const Tree> Tree::restore(const Context& ctx, const kernels::Prepared& index,
                                          kernels::TreeShape shape) {
  return with_builder(ctx, index, [&](auto builder) { return builder.restore(std::move(shape)); });
}

std::uint64_t Tree::element_bytes(DType dtype) noexcept {
  const Element element = element_of(dtype);
  if (element == Element::uint8) return 1;
  return element == Element::float64 ? 8 : 4;
}

std::uint64_t Tree::bytes(const kernels::Prepared& index) {
  const auto n = static_cast<std::uint64_t>(index.distinct_rows());
  const auto d = static_cast<std::uint64_t>(index.table.cols());
  const std::uint64_t size = element_bytes(index.table.dtype());
  // At least kPointsALeaf points a leaf on average (a leaf pads seven at most), at least two children a node; beyond
  // that some leaves of every part that a large node has, fewer than one for each hundred points.
  const std::uint64_t leaves = n / kPointsALeaf + n / 64 + 64;
  const std::uint64_t points = (n + 7 * leaves) * d * size;
  const std::uint64_t boxes = leaves * 16 * d * size;
  const std::uint64_t small = leaves * (2 * kTreeWidth * sizeof(Child));
  // While points are dealt there are two copies of them; when the tree is filled, one copy and the tree.
  const std::uint64_t dealing = n * d * size + 3 * n * sizeof(std::int64_t) + n;
  const std::uint64_t filling = points + boxes + small + n * sizeof(std::int64_t);
  return n * d * size + std::max(dealing, filling);
}

}  // namespace vicinal::cpu

// Contract clauses 1 and 10: every public function gives the same bits whatever floating-point mode the caller is in,
// and leaves mode, flags and errno as they were, also when it throws. tests/manners/test_entries.py asks for a case for
// every exported function (an overload each), so the names of the cases are those of the functions.
// fake device: -*

#if defined(__x86_64__)  // whose modes these are

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr unsigned kDefaultMode = 0x1f80;
constexpr unsigned kInexactFlag = 0x20;
constexpr int kErrno = 77;
const std::map<std::string, unsigned> kModes = {
    {"flushed_to_zero", 0x8040}, {"downward", 0x2000}, {"upward", 0x4000}, {"toward_zero", 0x6000}};

/// The caller's mode for a scope, with one flag raised.
class Mode {
 public:
  explicit Mode(unsigned bits) : set_(kDefaultMode | kInexactFlag | bits) {
    _mm_setcsr(set_);
    errno = kErrno;
  }
  ~Mode() { _mm_setcsr(kDefaultMode); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
  [[nodiscard]] bool is_kept() const { return _mm_getcsr() == set_; }

 private:
  unsigned set_;
};

/// What a function returned, as bytes.
class Bits {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void add(double value) { add(std::vector<double>{value}); }
  void add(const std::string& text) { bytes_ += text; }
  void add(const NeighborGraph& graph) {
    add(graph.ids);
    add(graph.distances);
    add(graph.offsets);
  }
  void add(const Plan& plan) { add(name_of(plan.method).data() + std::to_string(plan.memory)); }
  void add_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.append(std::istreambuf_iterator<char>(in), {});
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// What the functions work on, made in the default mode. `tiny` holds subnormal numbers alone.
struct Inputs {
  static constexpr std::int64_t kRows = 90;
  static constexpr std::int64_t kCols = 3;

  Context ctx = Context::cpu({.threads = 2});
  Generated roll = generate(ctx, {.shape = vicinal::Shape::swiss_roll, .rows = kRows, .noise = 0.01, .seed = 5});
  std::vector<double> small = scaled(roll.points, 1e-310);
  TableView table{roll.points.data(), kRows, kCols};
  TableView tiny{small.data(), kRows, kCols};
  TableView queries = table.slice(0, 20);
  std::vector<double> weights = magnitudes(small);
  TableView tiny_weights{weights.data(), kRows, kCols};
  std::vector<std::int64_t> classes = numbered(kRows, 3);
  Labels labels = encode_labels(classes);
  Index index{ctx, table};
  Preparation scaled_table = Preparation::fit(ctx, table, {.scaling = Scaling::standard});
  std::vector<double> gaps = with_gaps(small);
  Imputer imputer = Imputer::fit(ctx, tiny);
  NeighborGraph graph = knn(ctx, table, {.k = 8});
  Hdbscan fitted_hdbscan = hdbscan(ctx, index, {.min_cluster_size = 4});
  Lof fitted_lof = lof(ctx, index, {.k = 8, .novelty = true});
  SpanningTree tree = minimum_spanning_tree(ctx, table, {.min_samples = 3});
  Optics order = optics(ctx, table, {.min_samples = 4});
  Lle fitted_lle = lle(ctx, table, {.k = 8});
  KMeans fitted_kmeans = kmeans(ctx, table, {.clusters = 3, .seed = 1});
  std::vector<std::int64_t> ends_a = numbered(kRows, 11);
  std::vector<std::int64_t> ends_b = numbered(kRows, 7);
  BipartiteEdges edges{11, 7, ends_a, ends_b, std::span(roll.parameters).subspan(0, kRows)};
  Cocluster groups = cocluster(ctx, edges);
  Polygons map_a = squares(0.1);
  Polygons map_b = squares(0.3);
  std::vector<std::int64_t> offsets = {0, 3, 5};
  std::vector<std::int32_t> columns = {0, 1, 2, 0, 2};
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("vicinal_entry_" + std::to_string(getpid()));

  Inputs() {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "a.csv") << "x,y\n0.1,1e-310\n2.5,4.9406564584124654e-324\n0.30000000000000004,7\n";
    std::ofstream(folder / "labels.txt") << "ape\nbee\nape\n";
    std::ofstream(folder / "a.geojson") << geojson(0.1);
    std::ofstream(folder / "b.geojson") << geojson(0.3);
    index.save(ctx, folder / "index");
    write_part(ctx, folder / "radius.part", radius_part(ctx, table, queries, {.radius = 4.1}, {}));
    write_part(ctx, folder / "count.part", count_part(ctx, table, queries, {.radius = 4.1}, {}));
    lof_model().save(ctx, folder / "lof");
    lle_model().save(ctx, folder / "lle");
    neighbor_model().save(ctx, folder / "neighbor");
    kmeans_model().save(ctx, folder / "kmeans");
    checkpoint().save(ctx, folder / "checkpoint");
    hdbscan_model().save(ctx, folder / "hdbscan");
  }
  ~Inputs() { std::filesystem::remove_all(folder); }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  [[nodiscard]] PartOptions place() const { return {.first_id = 10, .first_query = 3}; }
  [[nodiscard]] std::vector<PartSource> sources(const char* name) const { return {open_part(ctx, folder / name)}; }
  [[nodiscard]] HdbscanModel hdbscan_model() const { return {index, fitted_hdbscan, "", scaled_table}; }
  [[nodiscard]] LofModel lof_model() const { return {index, fitted_lof, "", scaled_table}; }
  [[nodiscard]] LleModel lle_model() const { return {index, fitted_lle, "", scaled_table}; }
  [[nodiscard]] KMeansModel kmeans_model() const { return {fitted_kmeans, "", scaled_table}; }
  [[nodiscard]] KMeansCheckpoint checkpoint() const {
    return {.clusters = 3, .centres = {small.begin(), small.begin() + 9}};
  }
  [[nodiscard]] NeighborModel neighbor_model() const { return {.index = index, .outputs = {labels}}; }
  [[nodiscard]] NeighborModel regressor() const {
    return {.index = index,
            .targets = roll.parameters,
            .target_columns = static_cast<std::int64_t>(roll.parameters.size()) / kRows,
            .preparation = scaled_table};
  }
  [[nodiscard]] std::span<const double> row_weights() const { return std::span(weights).first(kRows); }
  /// The centers after an iteration whose questions the shard answers.
  [[nodiscard]] std::vector<double> one_iteration(KMeansShard& shard) const {
    const auto ask = [&](std::span<const std::byte> question) {
      return std::vector<std::vector<std::byte>>{shard.answer(question)};
    };
    const KMeansOptions options = {
        .clusters = 3, .init = KMeansInit::first_k, .weights = row_weights(), .max_iterations = 1};
    return kmeans(ctx, std::vector<std::int64_t>{kRows}, kCols, ask, options).centres;
  }
  [[nodiscard]] KMeansSteps steps(const Context& c) const {
    KMeansSteps made(c, tiny, {.clusters = 3});
    made.start(tiny.slice(0, 3));
    made.assign();
    return made;
  }
  [[nodiscard]] Table asked() const {
    Table made;
    made.view = queries;
    return made;
  }
  [[nodiscard]] std::vector<double> filled(const Context& c, bool as_table) const {
    Table asked;
    asked.view = TableView(gaps.data(), kRows, kCols);
    const Table made = as_table ? imputer.apply(c, asked) : imputer.apply(c, asked.view);
    const auto* const data = static_cast<const double*>(made.view.data());
    return {data, data + gaps.size()};
  }
  [[nodiscard]] SparseView sparse() const { return {3, offsets, columns, std::span(roll.points).subspan(0, 5)}; }

  [[nodiscard]] PolygonSource source(const char* name) const {
    PolygonSource made;
    made.path = folder / name;
    return made;
  }

  static std::vector<double> scaled(std::vector<double> values, double by) {
    for (double& value : values) value *= by;
    return values;
  }
  static std::vector<double> with_gaps(std::vector<double> values) {
    for (std::size_t i = 0; i < values.size(); i += 4) values[i] = std::numeric_limits<double>::quiet_NaN();
    return values;
  }
  static std::vector<double> magnitudes(std::vector<double> values) {
    for (double& value : values) value = std::abs(value);
    return values;
  }
  static std::vector<std::int64_t> numbered(std::int64_t size, std::int64_t modulus) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < size; ++i) values.push_back(i * i % modulus);
    return values;
  }
  static Polygons squares(double shift) {
    Polygons made;
    for (int i = 0; i < 5; ++i) {
      const double x = i * 0.7 + shift;
      made.add_ring(std::vector<double>{x, shift, x + 0.6, shift / 3, x + 0.5, 0.9, x - 0.1, 1.1});
      made.end_part();
      made.end_feature();
    }
    return made;
  }
  static std::string geojson(double shift) {
    std::string text = R"({"type":"FeatureCollection","features":[)";
    for (int i = 0; i < 3; ++i) {
      const auto at = [&](double x, double y) {
        return "[" + std::to_string(10 + x * 0.01 + shift * 0.001) + "," + std::to_string(50 + y * 0.01) + "]";
      };
      text += std::string(i > 0 ? "," : "") + R"({"type":"Feature","properties":{},"geometry":{"type":"Polygon",)" +
              R"("coordinates":[[)" + at(i, 0) + "," + at(i + 1, 0) + "," + at(i + 1, 1) + "," + at(i, 1) + "," +
              at(i, 0) + "]]}}";
    }
    return text + "]}";
  }
};

const Inputs& inputs() {
  static const Inputs made;
  return made;
}

struct Call {
  const char* name;  ///< of the function, without the namespace
  std::function<void(Bits&, const Context&, const Inputs&)> call;
};

void add_labels(Bits& bits, const Classification& found) {
  bits.add(found.votes[0].codes);
  bits.add(found.votes[0].probabilities);
}
void add_into(Bits& bits, const std::function<void(const KnnOutput&)>& call) {
  std::vector<std::int64_t> ids(Inputs::kRows * 5);
  std::vector<double> distances(ids.size());
  call({ids.data(), distances.data(), Memory::host});
  bits.add(ids);
  bits.add(distances);
}
/// Outlier scores of the first rows, for several numbers of rows, so that some quotient is not exact; some rows are
/// called positive.
void each_ranking(
    const Inputs& in,
    const std::function<void(const std::vector<std::int32_t>& truth, const std::vector<double>& scores)>& call) {
  for (std::size_t rows = 20; rows <= Inputs::kRows; rows += 7) {
    std::vector<std::int32_t> truth(in.labels.codes.begin(),
                                    in.labels.codes.begin() + static_cast<std::ptrdiff_t>(rows));
    for (std::int32_t& one : truth) one = one > 0 ? 1 : 0;
    call(truth, {in.fitted_lof.scores.begin(), in.fitted_lof.scores.begin() + static_cast<std::ptrdiff_t>(rows)});
  }
}
void add_part(Bits& bits, const NeighborPart& part) {
  bits.add(part.ids);
  bits.add(part.keys);
  bits.add(part.offsets);
  bits.add(part.counts);
}
void add_layers(Bits& bits, const PolygonLayers& layers) {
  bits.add(layers.a.polygons.points);
  bits.add(layers.b.polygons.points);
}
void add_scores(Bits& bits, const CrossValidation& found) {
  bits.add(found.scores);
  bits.add(found.fold_scores);
}
void add_preparation(Bits& bits, const Preparation& found) {
  for (const Preparation::Column& column : found.columns()) {
    bits.add(column.shift);
    bits.add(column.scale);
  }
}
void add_density(Bits& bits, const Hdbscan& found) {
  bits.add(found.labels);
  bits.add(found.probabilities);
  bits.add(found.outlier_scores);
  bits.add(found.persistences);
  bits.add(found.tree.stabilities);
}
void add_places(Bits& bits, const HdbscanPrediction& found) {
  bits.add(found.labels);
  bits.add(found.probabilities);
  bits.add(found.rows);
}
void add_order(Bits& bits, const Optics& found) {
  bits.add(found.ordering);
  bits.add(found.reachability);
  bits.add(found.core_distances);
  bits.add(found.predecessors);
}
void add_lle(Bits& bits, const Lle& found) {
  bits.add(found.embedding);
  for (const LlePiece& piece : found.pieces) bits.add(piece.singular_values);
}
/// A group of one rank, and the values that it exchanges with itself.
void with_self(Bits& bits, const std::function<void(Communicator& self, std::vector<std::int64_t>& values)>& call) {
  Communicator self;
  std::vector<std::int64_t> values = {5, -7, 11, 13};
  call(self, values);
  bits.add(values);
}
void add_groups(Bits& bits, const Cocluster& found) {
  bits.add(found.labels_a);
  bits.add(found.labels_b);
}

const VoteOptions kByDistance = {.weights = Weighting::distance, .probabilities = true};
const RegressOptions kMeanByDistance = {.weights = Weighting::distance};
const RadiusOptions kNear = {.radius = 4.1};

// clang-format off
const std::vector<Call> kCases = {
  {"Context::cpu", [](Bits& b, const Context&, const Inputs&) { b.add(static_cast<double>(Context::cpu({.memory_limit = 1 << 30}).threads())); }},
  {"Context::cuda", [](Bits& b, const Context&, const Inputs&) { try { b.add(Context::cuda().device()); } catch (const Error& e) { b.add(std::string(e.what())); } }},
  {"Context::automatic", [](Bits& b, const Context&, const Inputs&) { b.add(Context::automatic().device()); }},
  {"cuda_status", [](Bits& b, const Context&, const Inputs&) { b.add(cuda_status().missing); }},
  {"set_plugin", [](Bits& b, const Context&, const Inputs& in) { try { set_plugin(Plugin::geo, in.folder / "nowhere"); } catch (const Error& error) { b.add(std::string(error.what())); } }},
  {"set_plugin_finder", [](Bits& b, const Context&, const Inputs&) { set_plugin_finder({}); b.add(cuda_status().missing); }},
  {"tensor_core_sums", [](Bits& b, const Context& c, const Inputs&) { b.add(tensor_core_sums(c).model); }},
  {"mpi_status", [](Bits& b, const Context&, const Inputs&) { b.add(mpi_status().missing); }},
  {"generate", [](Bits& b, const Context& c, const Inputs&) { for (const vicinal::Shape s : {vicinal::Shape::blobs, vicinal::Shape::swiss_roll, vicinal::Shape::moons, vicinal::Shape::s_curve}) b.add(generate(c, {.shape = s, .rows = 50, .noise = 0.1}).points); }},
  {"Index::Index", [](Bits& b, const Context& c, const Inputs& in) { const Index index(c, in.tiny, {.copy = true, .tree = true}); b.add(knn(c, index, {.k = 5})); }},
  {"Index::save", [](Bits& b, const Context& c, const Inputs& in) { in.index.save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"Index::load", [](Bits& b, const Context& c, const Inputs& in) { b.add(knn(c, Index::load(c, in.folder / "index"), {.k = 5})); }},
  {"knn", [](Bits& b, const Context& c, const Inputs& in) {
     for (const Metric m : {Metric::euclidean, Metric::cosine, Metric::manhattan, Metric::minkowski, Metric::inner_product, Metric::hamming}) b.add(knn(c, in.table, {.k = 5, .metric = m, .p = 3})); }},
  {"knn", [](Bits& b, const Context& c, const Inputs& in) { for (const Metric m : {Metric::manhattan, Metric::cosine, Metric::chebyshev}) b.add(knn(c, in.tiny, in.tiny, {.k = 5, .metric = m})); }},
  {"knn", [](Bits& b, const Context& c, const Inputs& in) { b.add(knn(c, in.index, {.k = 5, .method = Method::kdtree})); }},
  {"knn", [](Bits& b, const Context& c, const Inputs& in) { b.add(knn(c, in.index, in.queries, {.k = 5, .method = Method::direct})); }},
  {"knn_into", [](Bits& b, const Context& c, const Inputs& in) { add_into(b, [&](const KnnOutput& to) { knn_into(c, in.tiny, {.k = 5, .metric = Metric::manhattan}, to); }); }},
  {"knn_into", [](Bits& b, const Context& c, const Inputs& in) { add_into(b, [&](const KnnOutput& to) { knn_into(c, in.table, in.queries, {.k = 5}, to); }); }},
  {"knn_into", [](Bits& b, const Context& c, const Inputs& in) { add_into(b, [&](const KnnOutput& to) { knn_into(c, in.index, {.k = 5}, to); }); }},
  {"knn_into", [](Bits& b, const Context& c, const Inputs& in) { add_into(b, [&](const KnnOutput& to) { knn_into(c, in.index, in.queries, {.k = 5}, to); }); }},
  {"RepeatedKnn::RepeatedKnn", [](Bits& b, const Context& c, const Inputs& in) { add_into(b, [&](const KnnOutput& to) { RepeatedKnn(c, in.index, in.queries, {.k = 5}).find(in.queries, to); }); }},
  {"RepeatedKnn::find", [](Bits& b, const Context& c, const Inputs& in) { add_into(b, [&](const KnnOutput& to) { RepeatedKnn(c, in.index, in.queries, {.k = 5, .method = Method::fused}).find(in.queries, to); }); }},
  {"radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(radius(c, in.table, kNear)); }},
  {"radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(radius(c, in.tiny, in.tiny, {.radius = 4.1e-310, .metric = Metric::manhattan})); }},
  {"radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(radius(c, in.index, kNear)); }},
  {"radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(radius(c, in.index, in.queries, kNear)); }},
  {"radius_batches", [](Bits& b, const Context& c, const Inputs& in) { radius_batches(c, in.table, kNear, [&](std::int64_t, const NeighborGraph& lists) { b.add(lists); }); }},
  {"radius_batches", [](Bits& b, const Context& c, const Inputs& in) { radius_batches(c, in.table, in.queries, kNear, [&](std::int64_t, const NeighborGraph& lists) { b.add(lists); }); }},
  {"radius_batches", [](Bits& b, const Context& c, const Inputs& in) { radius_batches(c, in.index, kNear, [&](std::int64_t, const NeighborGraph& lists) { b.add(lists); }); }},
  {"radius_batches", [](Bits& b, const Context& c, const Inputs& in) { radius_batches(c, in.index, in.queries, kNear, [&](std::int64_t, const NeighborGraph& lists) { b.add(lists); }); }},
  {"count", [](Bits& b, const Context& c, const Inputs& in) { b.add(count(c, in.index, kNear).counts); }},
  {"count", [](Bits& b, const Context& c, const Inputs& in) { b.add(count(c, in.index, in.queries, kNear).counts); }},
  {"minimum_spanning_tree", [](Bits& b, const Context& c, const Inputs& in) { const SpanningTree t = minimum_spanning_tree(c, in.tiny, {.min_samples = 3, .alpha = 0.9, .metric = Metric::manhattan}); b.add(t.a); b.add(t.b); b.add(t.lengths); b.add(t.core_distances); }},
  {"minimum_spanning_tree", [](Bits& b, const Context& c, const Inputs& in) { const SpanningTree t = minimum_spanning_tree(c, in.index, {}); b.add(t.a); b.add(t.b); b.add(t.lengths); }},
  {"plan_spanning_tree", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_spanning_tree(c, in.table)); }},
  {"dbscan", [](Bits& b, const Context& c, const Inputs& in) { b.add(dbscan(c, in.tiny, {.eps = 4.1e-310, .metric = Metric::manhattan}).labels); }},
  {"dbscan", [](Bits& b, const Context& c, const Inputs& in) { b.add(dbscan(c, in.index, {.eps = 3.7}).labels); }},
  {"plan_dbscan", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_dbscan(c, in.table, {})); }},
  {"hdbscan", [](Bits& b, const Context& c, const Inputs& in) { add_density(b, hdbscan(c, in.tiny, {.min_cluster_size = 4, .metric = Metric::manhattan})); }},
  {"hdbscan", [](Bits& b, const Context& c, const Inputs& in) { add_density(b, hdbscan(c, in.index, {.min_cluster_size = 4})); }},
  {"hdbscan", [](Bits& b, const Context& c, const Inputs& in) { add_density(b, hdbscan(c, in.tree, {.min_cluster_size = 3})); }},
  {"predict", [](Bits& b, const Context& c, const Inputs& in) { add_places(b, predict(c, in.index, in.hdbscan_model().fitted, in.queries)); }},
  {"predict", [](Bits& b, const Context& c, const Inputs& in) { add_places(b, predict(c, in.hdbscan_model(), in.queries)); }},
  {"predict", [](Bits& b, const Context& c, const Inputs& in) { add_places(b, predict(c, in.hdbscan_model(), in.asked())); }},
  {"memberships", [](Bits& b, const Context& c, const Inputs& in) { b.add(memberships(c, in.index, in.hdbscan_model().fitted).values); }},
  {"memberships", [](Bits& b, const Context& c, const Inputs& in) { b.add(memberships(c, in.index, in.hdbscan_model().fitted, in.queries).values); }},
  {"memberships", [](Bits& b, const Context& c, const Inputs& in) { b.add(memberships(c, in.hdbscan_model(), in.queries).values); }},
  {"memberships", [](Bits& b, const Context& c, const Inputs& in) { b.add(memberships(c, in.hdbscan_model(), in.asked()).values); }},
  {"membership_batches", [](Bits& b, const Context& c, const Inputs& in) { membership_batches(c, in.index, in.hdbscan_model().fitted, nullptr, [&](const Memberships& batch) { b.add(batch.values); }); }},
  {"membership_bytes", [](Bits& b, const Context& c, const Inputs& in) { b.add(std::to_string(membership_bytes(c, in.table, {.min_cluster_size = 4}))); }},
  {"membership_bytes", [](Bits& b, const Context& c, const Inputs& in) { b.add(std::to_string(membership_bytes(c, in.index, in.hdbscan_model().fitted, in.queries))); }},
  {"validity", [](Bits& b, const Context& c, const Inputs& in) { const Validity found = validity(c, in.tiny, in.hdbscan_model().fitted.labels); b.add(found.sparseness); b.add(found.separations); b.add(found.clusters); }},
  {"validity_bytes", [](Bits& b, const Context& c, const Inputs& in) { b.add(std::to_string(validity_bytes(c, in.table))); }},
  {"plan_predict", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_predict(c, in.index, in.hdbscan_model().fitted, in.queries)); }},
  {"HdbscanModel::save", [](Bits& b, const Context& c, const Inputs& in) { in.hdbscan_model().save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"HdbscanModel::load", [](Bits& b, const Context& c, const Inputs& in) { add_density(b, HdbscanModel::load(c, in.folder / "hdbscan").fitted); }},
  {"plan_hdbscan", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_hdbscan(c, in.table)); }},
  {"optics", [](Bits& b, const Context& c, const Inputs& in) { add_order(b, optics(c, in.tiny, {.metric = Metric::manhattan})); }},
  {"optics", [](Bits& b, const Context& c, const Inputs& in) { add_order(b, optics(c, in.index, {.min_samples = 4})); }},
  {"optics_xi", [](Bits& b, const Context& c, const Inputs& in) { const OpticsClusters found = optics_xi(c, in.order, {.xi = 0.02}); b.add(found.labels); b.add(found.starts); b.add(found.ends); }},
  {"optics_dbscan", [](Bits& b, const Context& c, const Inputs& in) { b.add(optics_dbscan(c, in.order, 3.5).labels); }},
  {"plan_optics", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_optics(c, in.table)); }},
  {"plan_knn", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_knn(c, in.table, nullptr, {.k = 5})); }},
  {"plan_radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_radius(c, in.table, nullptr, kNear)); }},
  {"plan_radius_batches", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_radius_batches(c, in.table, nullptr, kNear)); }},
  {"knn_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, knn_part(c, in.table, in.queries, {.k = 95, .metric = Metric::cosine}, in.place())); add_part(b, knn_part(c, in.tiny, in.tiny, {.k = 5, .metric = Metric::manhattan}, {.self = true})); }},
  {"knn_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, knn_part(c, in.index, in.queries, {.k = 5}, in.place())); }},
  {"radius_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, radius_part(c, in.tiny, in.tiny, {.radius = 4.1e-310, .metric = Metric::manhattan}, in.place())); }},
  {"radius_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, radius_part(c, in.index, in.queries, kNear, in.place())); }},
  {"count_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, count_part(c, in.table, in.queries, kNear, in.place())); }},
  {"count_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, count_part(c, in.index, in.queries, kNear, in.place())); }},
  {"plan_knn_part", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_knn_part(c, in.table, in.queries, {.k = 5}, in.place())); }},
  {"plan_radius_part", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_radius_part(c, in.table, in.queries, kNear, in.place())); }},
  {"plan_radius_part_file", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_radius_part_file(c, in.table, in.queries, kNear, in.place())); }},
  {"merge", [](Bits& b, const Context& c, const Inputs& in) { for (const Metric m : {Metric::euclidean, Metric::minkowski}) b.add(merge(c, std::vector{knn_part(in.ctx, in.table, in.queries, {.k = 5, .metric = m, .p = 3}, {})})); }},
  {"merge", [](Bits& b, const Context& c, const Inputs& in) { b.add(merge(c, in.sources("radius.part"))); }},
  {"merge_counts", [](Bits& b, const Context& c, const Inputs& in) { b.add(merge_counts(c, std::vector{count_part(in.ctx, in.table, in.queries, kNear, {})}).counts); }},
  {"merge_counts", [](Bits& b, const Context& c, const Inputs& in) { b.add(merge_counts(c, in.sources("count.part")).counts); }},
  {"source_of", [](Bits& b, const Context& c, const Inputs& in) { const NeighborPart part = radius_part(in.ctx, in.table, in.queries, kNear, {}); add_part(b, source_of(c, part).read(3, 9)); }},
  {"plan_merge", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_merge(c, in.sources("radius.part"))); }},
  {"merge_batches", [](Bits& b, const Context& c, const Inputs& in) { merge_batches(c, in.sources("radius.part"), [&](std::int64_t, const NeighborGraph& lists) { b.add(lists); }); }},
  {"write_part", [](Bits& b, const Context& c, const Inputs& in) { const NeighborPart part = read_part(in.ctx, in.folder / "radius.part"); write_part(c, in.folder / "out.part", part); b.add_file(in.folder / "out.part"); }},
  {"radius_part_file", [](Bits& b, const Context& c, const Inputs& in) { radius_part_file(c, in.table, in.queries, kNear, in.place(), in.folder / "out.part"); add_part(b, read_part(c, in.folder / "out.part")); }},
  {"radius_part_file", [](Bits& b, const Context& c, const Inputs& in) { radius_part_file(c, in.index, in.queries, kNear, in.place(), in.folder / "out.part"); add_part(b, read_part(c, in.folder / "out.part")); }},
  {"open_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, open_part(c, in.folder / "radius.part").read(3, 9)); }},
  {"part_bytes", [](Bits& b, const Context& c, const Inputs& in) { const NeighborPart part = read_part(in.ctx, in.folder / "radius.part"); const std::vector<std::byte> bytes = part_bytes(c, part); add_part(b, open_part_bytes(in.ctx, bytes, "a part").read(3, 9)); }},
  {"open_part_bytes", [](Bits& b, const Context& c, const Inputs& in) { const std::vector<std::byte> bytes = part_bytes(in.ctx, read_part(in.ctx, in.folder / "radius.part")); add_part(b, open_part_bytes(c, bytes, "a part").read(3, 9)); }},
  {"read_part", [](Bits& b, const Context& c, const Inputs& in) { add_part(b, read_part(c, in.folder / "count.part")); }},
  {"is_part_file", [](Bits& b, const Context& c, const Inputs& in) { b.add(is_part_file(c, in.folder / "count.part") ? 1.0 : 0.0); }},
  {"encode_labels", [](Bits& b, const Context&, const Inputs& in) { b.add(encode_labels(in.classes).codes); }},
  {"encode_labels", [](Bits& b, const Context&, const Inputs&) { b.add(encode_labels(std::vector<std::string>{"b", "a", "b"}).codes); }},
  {"vote", [](Bits& b, const Context& c, const Inputs& in) { const Vote v = vote(c, in.graph, in.labels, kByDistance); b.add(v.codes); b.add(v.probabilities); }},
  {"vote", [](Bits& b, const Context& c, const Inputs& in) { b.add(vote(c, in.graph, std::vector<Labels>{in.labels}, kByDistance)[0].probabilities); }},
  {"classify", [](Bits& b, const Context& c, const Inputs& in) { add_labels(b, classify(c, in.index, in.queries, std::vector<Labels>{in.labels}, {.k = 5}, kByDistance)); }},
  {"classify", [](Bits& b, const Context& c, const Inputs& in) { add_labels(b, classify(c, in.tiny, in.tiny, std::vector<Labels>{in.labels}, {.k = 5, .metric = Metric::manhattan}, kByDistance)); }},
  {"classify_radius", [](Bits& b, const Context& c, const Inputs& in) { add_labels(b, classify_radius(c, in.index, in.queries, std::vector<Labels>{in.labels}, kNear, kByDistance)); }},
  {"classify_radius", [](Bits& b, const Context& c, const Inputs& in) { add_labels(b, classify_radius(c, in.table, in.queries, std::vector<Labels>{in.labels}, kNear, kByDistance)); }},
  {"average", [](Bits& b, const Context& c, const Inputs& in) { b.add(average(c, in.graph, in.tiny, kMeanByDistance)); }},
  {"regress", [](Bits& b, const Context& c, const Inputs& in) { b.add(regress(c, in.index, in.queries, in.table, {.k = 5}, kMeanByDistance).values); }},
  {"regress", [](Bits& b, const Context& c, const Inputs& in) { b.add(regress(c, in.table, in.queries, in.tiny, {.k = 5}, kMeanByDistance).values); }},
  {"regress_radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(regress_radius(c, in.index, in.queries, in.table, kNear, kMeanByDistance).values); }},
  {"regress_radius", [](Bits& b, const Context& c, const Inputs& in) { b.add(regress_radius(c, in.table, in.queries, in.tiny, kNear, kMeanByDistance).values); }},
  {"cross_validate", [](Bits& b, const Context& c, const Inputs& in) { add_scores(b, cross_validate(c, in.index, in.labels, {.k_to = 6})); }},
  {"cross_validate", [](Bits& b, const Context& c, const Inputs& in) { add_scores(b, cross_validate(c, in.table, in.labels, {.k_to = 6})); }},
  {"cross_validate", [](Bits& b, const Context& c, const Inputs& in) { add_scores(b, cross_validate(c, in.index, in.table, {.k_to = 6})); }},
  {"cross_validate", [](Bits& b, const Context& c, const Inputs& in) { add_scores(b, cross_validate(c, in.table, in.tiny, {.k_to = 6})); }},
  {"plan_cross_validate", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_cross_validate(c, in.table, {.k_to = 6})); }},
  {"kmeans", [](Bits& b, const Context& c, const Inputs& in) {
     for (const TableView& table : {in.table, in.tiny}) {
       const KMeans found = kmeans(c, table, {.clusters = 4, .seed = 3});
       b.add(found.labels); b.add(found.centres); b.add(found.inertia);
     } }},
  {"kmeans", [](Bits& b, const Context& c, const Inputs& in) {
     KMeansShard shard(in.ctx, in.table, 0);
     const auto ask = [&](std::span<const std::byte> question) { return std::vector<std::vector<std::byte>>{shard.answer(question)}; };
     const KMeans found = kmeans(c, std::vector<std::int64_t>{in.table.rows()}, in.table.cols(), ask, {.clusters = 4, .init = KMeansInit::parallel, .seed = 3});
     b.add(found.labels); b.add(found.centres); b.add(found.inertia);
   }},
  {"KMeansShard::KMeansShard", [](Bits& b, const Context& c, const Inputs& in) { KMeansShard shard(c, in.tiny, 0, in.row_weights()); b.add(in.one_iteration(shard)); }},
  {"KMeansShard::answer", [](Bits& b, const Context& c, const Inputs& in) { KMeansShard shard(c, in.tiny, 0, in.row_weights()); b.add(in.one_iteration(shard)); }},
  {"plan_kmeans", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_kmeans(c, in.table, {.clusters = 4})); }},
  {"predict", [](Bits& b, const Context& c, const Inputs& in) { b.add(predict(c, in.fitted_kmeans, in.table)); }},
  {"score", [](Bits& b, const Context& c, const Inputs& in) { b.add(score(c, in.fitted_kmeans, in.table)); }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, in.fitted_kmeans, in.table)); }},
  {"centre_distances", [](Bits& b, const Context& c, const Inputs& in) { b.add(centre_distances(c, in.fitted_kmeans, in.table, in.fitted_kmeans.labels)); }},
  {"KMeansSteps::KMeansSteps", [](Bits& b, const Context& c, const Inputs& in) { b.add(KMeansSteps(c, in.tiny, {.clusters = 3}).plan()); }},
  {"KMeansSteps::start", [](Bits& b, const Context& c, const Inputs& in) { KMeansSteps steps(c, in.table, {.clusters = 3, .metric = Metric::cosine}); steps.start(in.table.slice(0, 3)); b.add(steps.centres()); }},
  {"KMeansSteps::set_centres", [](Bits& b, const Context& c, const Inputs& in) { KMeansSteps steps = in.steps(c); steps.set_centres(in.tiny.slice(0, 3)); b.add(steps.centres()); }},
  {"KMeansSteps::assign", [](Bits& b, const Context& c, const Inputs& in) { KMeansSteps steps = in.steps(c); b.add(static_cast<double>(steps.assign().changed)); b.add(steps.labels()); }},
  {"KMeansSteps::move_row", [](Bits& b, const Context& c, const Inputs& in) { KMeansSteps steps = in.steps(c); steps.move_row(5, 1); steps.means(); b.add(steps.centres()); }},
  {"KMeansSteps::means", [](Bits& b, const Context& c, const Inputs& in) { KMeansSteps steps = in.steps(c); b.add(steps.means()); b.add(steps.centres()); }},
  {"KMeansSteps::centres", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.steps(c).centres()); }},
  {"KMeansSteps::labels", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.steps(c).labels()); }},
  {"KMeansSteps::sizes", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.steps(c).sizes()); }},
  {"KMeansSteps::keys", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.steps(c).keys()); }},
  {"KMeansSteps::inertia", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.steps(c).inertia()); }},
  {"kmeans", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; const KMeans found = kmeans(c, self, in.tiny, 0, {.clusters = 4, .init = KMeansInit::parallel, .seed = 3}); b.add(found.centres); b.add(found.inertia); }},
  {"knn", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(knn(c, self, in.tiny, 0, {.k = 5})); }},
  {"knn", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(knn(c, self, in.tiny, 0, in.tiny, {.k = 5, .metric = Metric::cosine})); }},
  {"radius", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(radius(c, self, in.table, 0, kNear)); }},
  {"radius", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(radius(c, self, in.table, 0, in.queries, kNear)); }},
  {"count", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(count(c, self, in.table, 0, kNear).counts); }},
  {"count", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(count(c, self, in.table, 0, in.queries, kNear).counts); }},
  {"plan_knn", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(plan_knn(c, self, in.table, 0, nullptr, {.k = 5})); }},
  {"plan_radius", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(plan_radius(c, self, in.table, 0, &in.queries, kNear)); }},
  {"knn_part", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(knn_part(c, self, in.tiny, 0, {.k = 5}).keys); }},
  {"knn_part", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(knn_part(c, self, in.tiny, 0, in.tiny, {.k = 5, .metric = Metric::cosine}).keys); }},
  {"radius_part", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; add_part(b, radius_part(c, self, in.table, 0, kNear)); }},
  {"radius_part", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; add_part(b, radius_part(c, self, in.table, 0, in.queries, kNear)); }},
  {"count_part", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; add_part(b, count_part(c, self, in.table, 0, kNear)); }},
  {"count_part", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; add_part(b, count_part(c, self, in.table, 0, in.queries, kNear)); }},
  {"plan_count", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; b.add(plan_count(c, self, in.table, 0, &in.queries, kNear)); }},
  {"Communicator::Communicator", [](Bits& b, const Context&, const Inputs&) { b.add(Communicator().size()); }},
  {"Communicator::threads", [](Bits& b, const Context&, const Inputs&) { b.add(Communicator::threads(3)[2].rank()); }},
  {"Communicator::mpi", [](Bits& b, const Context&, const Inputs&) { try { b.add(Communicator::mpi({.piece_bytes = 7}).rank()); } catch (const Error& error) { b.add(std::string(error.what())); } }},
  {"Communicator::broadcast", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>& values) { self.broadcast(std::as_writable_bytes(std::span(values)), 0); }); }},
  {"Communicator::all_gather", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>& values) { const std::vector<std::int64_t> sizes = {16}; self.all_gather(std::as_bytes(std::span(values).first(2)), sizes, std::as_writable_bytes(std::span(values).last(2))); }); }},
  {"Communicator::all_reduce_sum", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>& values) { self.all_reduce_sum(values); }); }},
  {"Communicator::all_reduce_max", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>& values) { self.all_reduce_max(values); }); }},
  {"Communicator::send_receive", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>& values) { self.send_receive(std::as_bytes(std::span(values).first(2)), 0, std::as_writable_bytes(std::span(values).last(2)), 0); }); }},
  {"Communicator::barrier", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>&) { self.barrier(); }); }},
  {"Communicator::abandon", [](Bits& b, const Context&, const Inputs&) { with_self(b, [](Communicator& self, std::vector<std::int64_t>&) { self.abandon("an end"); }); }},
  {"KMeansCheckpoint::save", [](Bits& b, const Context& c, const Inputs& in) { in.checkpoint().save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"KMeansCheckpoint::load", [](Bits& b, const Context& c, const Inputs& in) { b.add(KMeansCheckpoint::load(c, in.folder / "checkpoint").centres); }},
  {"KMeansModel::save", [](Bits& b, const Context& c, const Inputs& in) { in.kmeans_model().save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"KMeansModel::load", [](Bits& b, const Context& c, const Inputs& in) { const KMeansModel read = KMeansModel::load(c, in.folder / "kmeans"); b.add(read.fitted.centres); b.add(read.fitted.inertia); }},
  {"lof", [](Bits& b, const Context& c, const Inputs& in) { for (const OutlierScore s : {OutlierScore::lof, OutlierScore::loop, OutlierScore::knn_weighted, OutlierScore::inflo}) b.add(lof(c, in.graph, {.k = 8, .score = s}).scores); }},
  {"lof", [](Bits& b, const Context& c, const Inputs& in) { for (const OutlierScore s : {OutlierScore::ldof, OutlierScore::cof, OutlierScore::cof_pyod}) b.add(lof(c, in.graph, in.table, {.k = 8, .score = s}).scores); }},
  {"lof", [](Bits& b, const Context& c, const Inputs& in) { b.add(lof(c, in.tiny, {.k = 8, .score = OutlierScore::knn, .metric = Metric::manhattan}).scores); }},
  {"lof", [](Bits& b, const Context& c, const Inputs& in) { const Lof found = lof(c, in.index, {.k = 8, .contamination = 0.1, .novelty = true}); b.add(found.densities); b.add(found.threshold); }},
  {"lof", [](Bits& b, const Context& c, const Inputs& in) { Communicator self; const Lof found = lof(c, self, in.graph, 0, {.k = 8, .score = OutlierScore::loop, .contamination = 0.1, .novelty = true}); b.add(found.scores); b.add(found.densities); b.add(found.threshold); }},
  {"novelty", [](Bits& b, const Context& c, const Inputs& in) { b.add(novelty(c, in.index, in.fitted_lof, in.queries)); }},
  {"plan_lof", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_lof(c, in.table, {.k = 8})); }},
  {"LofModel::save", [](Bits& b, const Context& c, const Inputs& in) { in.lof_model().save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"LofModel::load", [](Bits& b, const Context& c, const Inputs& in) { b.add(LofModel::load(c, in.folder / "lof").fitted.scores); }},
  {"lle", [](Bits& b, const Context& c, const Inputs& in) { for (const LleVariant v : {LleVariant::standard, LleVariant::modified, LleVariant::hessian, LleVariant::ltsa}) add_lle(b, lle(c, in.table, {.k = 8, .variant = v, .solver = LleSolver::direct})); }},
  {"lle", [](Bits& b, const Context& c, const Inputs& in) { add_lle(b, lle(c, in.table, in.graph, {.k = 8, .solver = LleSolver::lanczos})); }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, in.index, in.fitted_lle, in.queries)); }},
  {"plan_lle", [](Bits& b, const Context& c, const Inputs& in) { b.add(plan_lle(c, in.table, {.k = 8})); }},
  {"lle_quality", [](Bits& b, const Context& c, const Inputs& in) { const LleQuality q = lle_quality(c, in.table, in.fitted_lle); b.add(q.trustworthiness); b.add(q.continuity); b.add(q.conditions); }},
  {"compare_parameters", [](Bits& b, const Context& c, const Inputs& in) { const LleParameterFit fit = compare_parameters(c, in.fitted_lle, in.table); b.add(fit.affine); b.add(fit.procrustes); }},
  {"LleModel::save", [](Bits& b, const Context& c, const Inputs& in) { in.lle_model().save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"LleModel::load", [](Bits& b, const Context& c, const Inputs& in) { b.add(LleModel::load(c, in.folder / "lle").fitted.embedding); }},
  {"NeighborModel::save", [](Bits& b, const Context& c, const Inputs& in) { in.neighbor_model().save(c, in.folder / "out"); b.add_file(in.folder / "out"); }},
  {"NeighborModel::load", [](Bits& b, const Context& c, const Inputs& in) { b.add(NeighborModel::load(c, in.folder / "neighbor").outputs[0].codes); }},
  {"Preparation::fit", [](Bits& b, const Context& c, const Inputs& in) { add_preparation(b, Preparation::fit(c, in.table, {.scaling = Scaling::standard})); }},
  {"Preparation::fit", [](Bits& b, const Context& c, const Inputs& in) { Table t; t.view = in.tiny; add_preparation(b, Preparation::fit(c, t, {.scaling = Scaling::minmax})); }},
  {"Preparation::of", [](Bits& b, const Context&, const Inputs& in) { add_preparation(b, Preparation::of({{"", {}, in.small[0], 3e-310, false}}, Scaling::minmax)); }},
  {"Preparation::apply", [](Bits& b, const Context& c, const Inputs& in) { const Table t = in.scaled_table.apply(c, in.tiny); b.add(knn(in.ctx, t.view, {.k = 3})); }},
  {"Preparation::apply", [](Bits& b, const Context& c, const Inputs& in) { Table t; t.view = in.table; b.add(knn(in.ctx, in.scaled_table.apply(c, t).view, {.k = 3})); }},
  {"Preparation::read", [](Bits& b, const Context& c, const Inputs& in) { b.add(knn(in.ctx, Preparation::of({{"", {}, 1e-310, 3, false}, {}}, Scaling::minmax).read(c, in.folder / "a.csv").view, {.k = 1})); }},
  {"Preparation::matched", [](Bits& b, const Context&, const Inputs&) { b.add(Preparation::of({{}, {"", {"a"}, 0, 1, false}}, Scaling::none).matched({}, {"x", "y"}, "file").options.text.at(0)); }},
  {"Preparation::has_names", [](Bits& b, const Context&, const Inputs&) { b.add(std::string(Preparation::of({{"x", {}, 0, 1, false}}, Scaling::none).has_names() ? "yes" : "no")); }},
  {"Imputer::fit", [](Bits& b, const Context& c, const Inputs& in) { b.add(Imputer::fit(c, in.table, {.filling = Filling::mean}).values()); }},
  {"Imputer::fit", [](Bits& b, const Context& c, const Inputs& in) { Table t; t.view = in.tiny; b.add(Imputer::fit(c, t, {.filling = Filling::median}).values()); }},
  {"Imputer::of", [](Bits& b, const Context&, const Inputs& in) { b.add(Imputer::of({.filling = Filling::mean}, {in.small[0], 3e-310}).values()); }},
  {"Imputer::apply", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.filled(c, false)); }},
  {"Imputer::apply", [](Bits& b, const Context& c, const Inputs& in) { b.add(in.filled(c, true)); }},
  {"plan_impute", [](Bits& b, const Context& c, const Inputs& in) { b.add(static_cast<double>(plan_impute(c, in.table, in.tiny).memory)); }},
  {"count_missing", [](Bits& b, const Context& c, const Inputs& in) { b.add(count_missing(c, in.table)); }},
  {"complete_rows", [](Bits& b, const Context& c, const Inputs& in) { Table t; t.view = in.tiny; b.add(complete_rows(c, t).rows); }},
  {"Preparation::name_of", [](Bits& b, const Context&, const Inputs& in) { b.add(in.scaled_table.name_of(1)); }},
  {"Context::with_memory_limit", [](Bits& b, const Context& c, const Inputs&) { b.add(static_cast<double>(c.with_memory_limit(std::uint64_t{1} << 20).memory_limit())); }},
  {"classify", [](Bits& b, const Context& c, const Inputs& in) { b.add(classify(c, in.neighbor_model(), in.queries, true).votes.at(0).probabilities); }},
  {"classify", [](Bits& b, const Context& c, const Inputs& in) { b.add(classify(c, in.neighbor_model(), in.asked()).votes.at(0).codes); }},
  {"regress", [](Bits& b, const Context& c, const Inputs& in) { b.add(regress(c, in.regressor(), in.queries).values); }},
  {"regress", [](Bits& b, const Context& c, const Inputs& in) { b.add(regress(c, in.regressor(), in.asked()).values); }},
  {"predict", [](Bits& b, const Context& c, const Inputs& in) { b.add(predict(c, in.kmeans_model(), in.queries)); }},
  {"predict", [](Bits& b, const Context& c, const Inputs& in) { b.add(predict(c, in.kmeans_model(), in.asked())); }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, in.kmeans_model(), in.queries)); }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, in.kmeans_model(), in.asked())); }},
  {"score", [](Bits& b, const Context& c, const Inputs& in) { b.add(score(c, in.kmeans_model(), in.queries)); }},
  {"score", [](Bits& b, const Context& c, const Inputs& in) { b.add(score(c, in.kmeans_model(), in.asked())); }},
  {"novelty", [](Bits& b, const Context& c, const Inputs& in) { b.add(novelty(c, in.lof_model(), in.queries)); }},
  {"novelty", [](Bits& b, const Context& c, const Inputs& in) { b.add(novelty(c, in.lof_model(), in.asked())); }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, in.lle_model(), in.queries)); }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, in.lle_model(), in.asked())); }},
  {"cocluster", [](Bits& b, const Context& c, const Inputs& in) { add_groups(b, cocluster(c, in.edges)); }},
  {"cocluster", [](Bits& b, const Context& c, const Inputs& in) { add_groups(b, cocluster(c, in.tiny_weights)); }},
  {"merge_labels", [](Bits& b, const Context& c, const Inputs&) { const std::vector<std::int64_t> labels = {0, 0, 2, 2}; const std::vector<std::span<const std::int64_t>> shards = {labels, labels}; b.add(merge_labels(c, shards)); }},
  {"merge_labels", [](Bits& b, const Context& c, const Inputs&) { const std::vector<std::int64_t> labels = {0, 0, 2, 2}; Communicator self; b.add(merge_labels(c, self, labels)); }},
  {"split_groups", [](Bits& b, const Context& c, const Inputs& in) { b.add(split_groups(c, in.edges, in.groups, {.max_members = 5}).cut_edges); }},
  {"plan_cocluster", [](Bits& b, const Context& c, const Inputs& in) { b.add(static_cast<double>(plan_cocluster(c, in.edges).memory)); }},
  {"spectral_cocluster", [](Bits& b, const Context& c, const Inputs& in) { const SpectralCocluster found = spectral_cocluster(c, in.edges); b.add(found.labels_a); b.add(found.singular_values); b.add(found.residual); }},
  {"spmv", [](Bits& b, const Context& c, const Inputs& in) { b.add(spmv(c, in.sparse(), std::span(in.small).subspan(0, 3)).product); }},
  {"overlaps", [](Bits& b, const Context& c, const Inputs& in) {
     const Overlaps found = overlaps(c, in.map_a.view(), in.map_b.view());
     b.add(found.areas_a);
     for (const Overlap& pair : found.pairs) { b.add(pair.area); b.add(pair.width); } }},
  {"self_overlapping", [](Bits& b, const Context& c, const Inputs& in) { b.add(self_overlapping(c, in.map_a.view())); }},
  {"match", [](Bits& b, const Context& c, const Inputs& in) { for (const MatchGroup& group : match(c, in.map_a.view(), in.map_b.view()).groups) { b.add(group.iou); b.add(group.coherence); } }},
  {"list_changes", [](Bits& b, const Context& c, const Inputs& in) { for (const ListedChange& line : list_changes(c, match(in.ctx, in.map_a.view(), in.map_b.view()))) { b.add(line.area); b.add(line.share_a); } }},
  {"overlaps_within", [](Bits& b, const Context& c, const Inputs& in) { const LayerOverlap found = overlaps_within(c, in.map_a.view()); b.add(found.area); b.add(found.covered); b.add(found.largest); }},
  {"carry", [](Bits& b, const Context& c, const Inputs& in) {
     const Match found = match(in.ctx, in.map_a.view(), in.map_b.view());
     const std::vector<double> values(found.a.size(), 0.1);
     for (const CarryRule rule : {CarryRule::sum, CarryRule::mean}) { const CarriedNumbers n = carry(c, found, values, rule); b.add(n.shares); for (const double value : n.values) b.add(value == value ? value : 7); b.add(n.left); } }},
  {"carry_codes", [](Bits& b, const Context& c, const Inputs& in) { const Match found = match(in.ctx, in.map_a.view(), in.map_b.view()); b.add(carry_codes(c, found, std::vector<std::int64_t>(found.a.size(), 3)).shares); }},
  {"check_match_output", [](Bits& b, const Context&, const Inputs&) { try { check_match_output("a.gpkg"); } catch (const Error& e) { b.add(std::string(e.what())); } }},
  {"classification_scores", [](Bits& b, const Context& c, const Inputs& in) { const ClassificationScores s = classification_scores(c, in.labels.codes, in.fitted_kmeans.labels, 3); b.add(s.accuracy); b.add(s.kappa.value_or(7)); b.add(s.matthews); b.add(s.macro.f1); b.add(s.weighted.precision); }},
  {"confusion_matrix", [](Bits& b, const Context& c, const Inputs& in) { b.add(confusion_matrix(c, in.labels.codes, in.fitted_kmeans.labels, 3)); }},
  {"roc_auc_score", [](Bits& b, const Context& c, const Inputs& in) { each_ranking(in, [&](const auto& truth, const auto& scores) { b.add(roc_auc_score(c, truth, scores)); }); }},
  {"roc_curve", [](Bits& b, const Context& c, const Inputs& in) { each_ranking(in, [&](const auto& truth, const auto& scores) { const RocCurve r = roc_curve(c, truth, scores); b.add(r.false_positive_rates); b.add(r.true_positive_rates); b.add(r.thresholds); }); }},
  {"average_precision_score", [](Bits& b, const Context& c, const Inputs& in) { each_ranking(in, [&](const auto& truth, const auto& scores) { b.add(average_precision_score(c, truth, scores)); }); }},
  {"precision_at_n_score", [](Bits& b, const Context& c, const Inputs& in) { each_ranking(in, [&](const auto& truth, const auto& scores) { b.add(precision_at_n_score(c, truth, scores)); }); }},
  {"clustering_scores", [](Bits& b, const Context& c, const Inputs& in) { const ClusteringScores s = clustering_scores(c, {in.labels.codes, 3}, {in.fitted_kmeans.labels, 3}); b.add(s.adjusted_rand); b.add(s.homogeneity); b.add(s.completeness); b.add(s.v_measure); }},
  {"regression_scores", [](Bits& b, const Context& c, const Inputs& in) {
     for (const auto* const truth : {&in.weights, &in.roll.points}) for (const RegressionScore& s : regression_scores(c, *truth, in.small, Inputs::kCols)) { b.add(s.root_mean_squared_error); b.add(s.mean_absolute_error); b.add(s.r2.value_or(7)); } }},
  {"silhouette_scores", [](Bits& b, const Context& c, const Inputs& in) { const SilhouetteScores s = silhouette_scores(c, in.tiny, {in.fitted_kmeans.labels, 3}, {.metric = Metric::manhattan}); b.add(s.samples); b.add(s.clusters); b.add(s.mean.value_or(7)); }},
  {"silhouette_scores", [](Bits& b, const Context& c, const Inputs& in) { b.add(silhouette_scores(c, in.table, std::vector<Labeling>{{in.fitted_kmeans.labels, 3}, {in.labels.codes, 3}})[1].samples); }},
  {"silhouette_bytes", [](Bits& b, const Context& c, const Inputs& in) { b.add(static_cast<double>(silhouette_bytes(c, in.table, 2, 3))); }},
  {"sample_rows", [](Bits& b, const Context& c, const Inputs& in) { const TableSample s = sample_rows(c, in.tiny, 20, 3); b.add(s.ids); b.add(s.values); }},
  {"pca", [](Bits& b, const Context& c, const Inputs& in) { for (const TableView& table : {in.table, in.tiny}) { const Pca p = pca(c, table); b.add(p.axes); b.add(p.explained_variance_ratio); b.add(p.mean); } }},
  {"transform", [](Bits& b, const Context& c, const Inputs& in) { b.add(transform(c, pca(in.ctx, in.table), in.tiny)); }},
  {"polygon_files_missing", [](Bits& b, const Context&, const Inputs&) { b.add(polygon_files_missing()); }},
  {"describe_polygon_file", [](Bits& b, const Context& c, const Inputs& in) { try { b.add(describe_polygon_file(c, in.folder / "a.geojson").layers[0].extent); } catch (const Error& e) { b.add(std::string(e.what())); } }},
  {"read_polygon_layers", [](Bits& b, const Context& c, const Inputs& in) { try { add_layers(b, read_polygon_layers(c, in.source("a.geojson"), in.source("b.geojson"))); } catch (const Error& e) { b.add(std::string(e.what())); } }},
  {"write_match", [](Bits& b, const Context& c, const Inputs& in) {
     if (!polygon_files_missing().empty()) return;
     const PolygonLayers layers = read_polygon_layers(c, in.source("a.geojson"), in.source("b.geojson"));
     write_match(c, in.folder / "matched.geojson", layers, match(c, layers.a.polygons.view(), layers.b.polygons.view()));
     for (const auto& file : std::filesystem::directory_iterator(in.folder)) {
       if (file.path().filename().string().starts_with("matched")) b.add_file(file.path());
     } }},
  {"read_table", [](Bits& b, const Context& c, const Inputs& in) { const Table t = read_table(c, in.folder / "a.csv"); b.add(knn(in.ctx, t.view, {.k = 2, .metric = Metric::manhattan})); }},
  {"parse_table", [](Bits& b, const Context& c, const Inputs& in) { const Table t = parse_table(c, "0.1,1e-310\n4.9e-324,0.7\n0.3,0.123456789012345678901\n", "text"); b.add(knn(in.ctx, t.view, {.k = 2, .metric = Metric::manhattan})); }},
  {"read_labels", [](Bits& b, const Context& c, const Inputs& in) { b.add(read_labels(c, in.folder / "labels.txt").codes); }},
  {"describe_file", [](Bits& b, const Context& c, const Inputs& in) { b.add(describe_file(c, in.folder / "a.csv").columns.at(1)); }},
  {"describe_file", [](Bits& b, const Context& c, const Inputs& in) { b.add(describe_file(c, in.folder / "a.csv", ReadOptions{}).columns.at(1)); }},
  {"read_bytes", [](Bits& b, const Context& c, const Inputs& in) { const FileBytes read = read_bytes(c, in.folder / "a.csv"); b.add(std::vector<unsigned char>(read.bytes.begin(), read.bytes.end())); }},
  {"write_table", [](Bits& b, const Context& c, const Inputs& in) {
     for (const char* const name : {"out.csv", "out.libsvm", "out.npy.xz"}) { Table t; t.view = in.tiny; write_table(c, in.folder / name, t, {}); b.add_file(in.folder / name); } }},
  {"write_npy", [](Bits& b, const Context&, const Inputs& in) { write_npy(in.folder / "out.npy", {in.small.data(), "<f8", {Inputs::kRows, Inputs::kCols}}); b.add_file(in.folder / "out.npy"); }},
  {"write_npz", [](Bits& b, const Context&, const Inputs& in) { write_npz(in.folder / "out.npz", std::vector<NamedArray>{{"a", {in.small.data(), "<f8", {Inputs::kRows, Inputs::kCols}}}}); b.add_file(in.folder / "out.npz"); }},
  {"write_text", [](Bits& b, const Context&, const Inputs& in) { write_text(in.folder / "out.txt", "text"); b.add_file(in.folder / "out.txt"); }},
  {"write_graph", [](Bits& b, const Context&, const Inputs& in) { for (const char* const name : {"graph.csv", "graph.npz"}) { write_graph(in.folder / name, in.graph); b.add_file(in.folder / name); } }},
  {"write_graph", [](Bits& b, const Context& c, const Inputs& in) { write_graph(c, in.folder / "matrix.npz", in.graph, {.layout = GraphLayout::scipy, .distances = DType::float32}); b.add_file(in.folder / "matrix.npz"); }},
  {"symmetrize", [](Bits& b, const Context& c, const Inputs& in) { for (const Symmetry s : {Symmetry::either, Symmetry::mutual}) b.add(symmetrize(c, in.graph, s)); }},
  {"symmetrize_bytes", [](Bits& b, const Context& c, const Inputs&) { b.add(static_cast<double>(symmetrize_bytes(c, 90, 720, Symmetry::either))); }},
  {"with_self", [](Bits& b, const Context& c, const Inputs& in) { b.add(with_self(c, in.graph)); }},
};
// clang-format on

class Entry : public ::testing::TestWithParam<std::string> {};

TEST_P(Entry, SameBitsAndTheCallersModeFlagsAndErrno) {
  for (const Call& one : kCases) {
    SCOPED_TRACE(one.name);
    Bits expected;
    one.call(expected, Context::cpu({.threads = 2}), inputs());
    const Context ctx = Context::cpu({.threads = 2});  // whose threads start in the caller's mode
    Bits found;
    bool kept = false;
    int error = 0;
    {
      const Mode mode(kModes.at(GetParam()));
      one.call(found, ctx, inputs());
      kept = mode.is_kept();
      error = errno;
    }
    EXPECT_EQ(found.bytes() == expected.bytes(), true) << "other bits";
    EXPECT_TRUE(kept) << "another mode or other flags";
    EXPECT_EQ(error, kErrno);
  }
}

TEST_P(Entry, TheSameAfterAnError) {
  const Inputs& in = inputs();
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { (void)knn(in.ctx, in.table, {.k = 0}); },
           [&] { (void)kmeans(in.ctx, in.table, {.clusters = Inputs::kRows + 1}); },
           [&] { (void)read_table(in.ctx, in.folder / "missing.csv"); },
           [&] { (void)Index::load(in.ctx, in.folder / "a.csv"); },
           [&] { (void)parse_table(in.ctx, "0.1\nnan\n", "text"); },
           [&] { write_text(in.folder / "missing" / "out.txt", "text"); },
       }) {
    bool refused = false;
    bool kept = false;
    int error = 0;
    {
      const Mode mode(kModes.at(GetParam()));
      try {
        call();
      } catch (const Error&) {
        refused = true;
      }
      kept = mode.is_kept();
      error = errno;
    }
    EXPECT_TRUE(refused);
    EXPECT_TRUE(kept);
    EXPECT_EQ(error, kErrno);
  }
}

/// What a child process says of `call` when it may have `bytes` of address space beyond what it has.
std::string said_within(rlim_t bytes, const std::function<void()>& call) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "nothing";
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    const rlimit space{limit, limit};
    if (::setrlimit(RLIMIT_AS, &space) != 0) ::_exit(2);
    try {
      call();
    } catch (const Error& error) {
      said = error.code() == ErrorCode::over_memory ? error.what() : "another code";
    } catch (const std::exception& error) {
      said = std::string("no Error: ") + error.what();
    }
    ::_exit(::write(ends[1], said.data(), said.size()) < 0 ? 3 : 0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 256> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? said : "a child that ended with status " + std::to_string(status);
}

// Within the memory limit, beyond what the system gives: an Error, never std::bad_alloc.
TEST(EntryWithoutMemory, IsAnError) {
  if (kSparse > 1) GTEST_SKIP() << "a sanitizer's own address space is without limit";
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  const std::vector<float> values(20'000 * 2, 1.0F);
  const TableView table{values.data(), 20'000, 2};
  for (const int threads : {1, 2}) {
    const auto ctx = [&] { return Context::cpu({.threads = threads, .memory_limit = kMuch}); };
    for (const std::function<void()>& call : std::vector<std::function<void()>>{
             [&] { (void)generate(ctx(), {.rows = 100'000'000, .cols = 8}); },
             [&] { (void)knn(ctx(), table, {.k = 15'000}); },
             [&] { (void)knn(ctx(), table, {.k = 15'000, .method = Method::direct}); },
             [&] { (void)radius(ctx(), table, {.radius = 1}); },
             [&] { (void)lof(ctx(), table, {.k = 15'000}); },
             [&] { (void)cocluster(ctx(), table, {.method = CoclusterMethod::product_tiled}); },
         }) {
      const std::string said = said_within(256 << 20, call);
      EXPECT_TRUE(said.find("ulimit -v") != std::string::npos && said.find("of which it has") != std::string::npos)
          << said;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Entry, ::testing::Values("flushed_to_zero", "downward", "upward", "toward_zero"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace vicinal::contract

#endif

// See bench_papers_lle.hpp. The paper's surfaces have three columns; here an isometry puts them into 32, by Householder
// reflections, so that distances, and with them the embedding, are those of the surface.
#include "bench_papers_lle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench_harness.hpp"
#include "machine.hpp"
#include "output.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/sparse.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kPaperNeighbors = 9;
constexpr std::int64_t kPaperColumns = 32;
constexpr double kSameValues = 1e-6;     // of a singular value: clause 17
constexpr double kSameProducts = 1e-13;  // of sums of ten products
constexpr std::int64_t kSpmvRepeat = 20;

/// Rows [n, 3] in 32 columns.
std::vector<double> in_many_columns(const std::vector<double>& points) {
  const std::int64_t n = static_cast<std::int64_t>(points.size()) / 3;
  std::vector<double> rows(static_cast<std::size_t>(n * kPaperColumns), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    double* const row = &rows[i * kPaperColumns];
    std::copy_n(&points[i * 3], 3, row);
    for (int reflection = 0; reflection < 3; ++reflection) {
      double dot = 0;
      double square = 0;
      const auto entry = [&](std::int64_t c) { return std::cos(static_cast<double>((reflection + 1) * (c + 1))); };
      for (std::int64_t c = 0; c < kPaperColumns; ++c) {
        dot += entry(c) * row[c];
        square += entry(c) * entry(c);
      }
      for (std::int64_t c = 0; c < kPaperColumns; ++c) row[c] -= 2 * dot / square * entry(c);
    }
  }
  return rows;
}

class LlePaper {
 public:
  explicit LlePaper(const PapersOptions& options) : options_(options), runtime_(make_runtime(options.common)) {
    CommonOptions on_host = options.common;
    on_host.device = "cpu";
    contexts_.push_back(make_runtime(on_host).ctx);
    if (runtime_.ctx.device() != contexts_[0].device()) contexts_.push_back(runtime_.ctx);
  }

  void run() {
    std::vector<std::string> head = {"surface", "n"};
    for (const Context& ctx : contexts_) {
      head.push_back(fmt::format("{} s", ctx.device()));
      head.push_back("Krylov s");
    }
    head.emplace_back("ratio");
    printed_.push_back(head);
    for (const Shape shape : {Shape::swiss_roll, Shape::s_curve}) {
      for (std::int64_t n = std::min<std::int64_t>(1024, options_.most_rows);; n *= 2) {
        embed(shape, std::min(n, options_.most_rows));
        if (n * 2 > std::min(options_.most_rows, std::int64_t{1} << 14)) break;
      }
    }
    products();
    runtime_.progress->clear();
    if (options_.common.json) {
      print_json(result());
    } else {
      write_stdout(fmt::format("embeddings, K = 9, D = 32\n{}\nproducts, microseconds\n{}\n", format_table(printed_),
                               format_table(product_lines_)));
    }
    if (different_ > 0) throw Error(ErrorCode::internal, fmt::format("answers differ in {} lines", different_));
  }

 private:
  [[nodiscard]] Generated surface(Shape shape, std::int64_t n) const {
    return generate(runtime_.ctx, {.shape = shape, .rows = n, .seed = 1});
  }

  void embed(Shape shape, std::int64_t n) {
    const std::vector<double> rows = in_many_columns(surface(shape, n).points);
    const TableView table(rows.data(), n, kPaperColumns);
    const LleOptions asked{.k = std::min(kPaperNeighbors, n - 1), .solver = LleSolver::lanczos};
    std::vector<std::string> text = {std::string(name_of(shape)), fmt::format("{}", n)};
    std::vector<double> medians;
    std::vector<double> first;
    for (const Context& ctx : contexts_) {
      Lle found;
      std::vector<double> solving;
      const Timings timings = measure(ctx, options_.warmup, options_.repeat, [&] {
        found = lle(ctx, table, asked);
        solving.push_back(found.solve_seconds);
      });
      std::nth_element(solving.begin(), solving.begin() + static_cast<std::ptrdiff_t>(solving.size() / 2),
                       solving.end());
      const double krylov = solving[solving.size() / 2];
      const LlePiece& piece = found.pieces[0];
      lines_.push_back({{"surface", name_of(shape)},
                        {"rows", n},
                        {"device", ctx.device()},
                        {"seconds", to_json(timings)},
                        {"krylov_seconds", krylov},
                        {"products", piece.iterations},
                        {"pieces", found.pieces.size()},
                        {"singular_values", piece.singular_values}});
      medians.push_back(timings.median());
      text.push_back(fmt::format("{:.4f}", timings.median()));
      text.push_back(fmt::format("{:.4f}", krylov));
      if (first.empty()) first = piece.singular_values;
      for (std::size_t c = 0; c < first.size(); ++c) {
        if (!(std::abs(first[c] - piece.singular_values[c]) <= kSameValues * first[c])) ++different_;
      }
    }
    text.push_back(fmt::format("{:.1f}", medians.front() / medians.back()));
    printed_.push_back(text);
    save();
  }

  // The matrix of standard weights has this pattern; of equal weights here, which changes no byte that is moved.
  void products() {
    const std::int64_t n = std::max<std::int64_t>(options_.spmv_rows, 2);
    const Generated made = surface(Shape::swiss_roll, n);
    const std::int64_t k = std::min(kPaperNeighbors, n - 1);
    const NeighborGraph graph = knn(runtime_.ctx, TableView(made.points.data(), n, made.cols), {.k = k});
    std::vector<std::int64_t> offsets = {0};
    std::vector<std::int32_t> index;
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) {
      index.push_back(static_cast<std::int32_t>(i));
      values.push_back(1);
      for (const std::int64_t id : graph.ids_of(i)) {
        index.push_back(static_cast<std::int32_t>(id));
        values.push_back(-1 / static_cast<double>(k));
      }
      offsets.push_back(static_cast<std::int64_t>(index.size()));
    }
    std::vector<double> x;
    for (std::int64_t i = 0; i < n; ++i) x.push_back(std::sin(static_cast<double>(i)));
    const SparseView a{n, offsets, index, values};
    product_lines_.push_back({"method", "rows", "us", "GB/s"});
    std::vector<double> first;
    for (const SpmvMethod method :
         {SpmvMethod::rows, SpmvMethod::block_row, SpmvMethod::warp_row, SpmvMethod::padded_row,
          SpmvMethod::sliced_rows, SpmvMethod::eight, SpmvMethod::library}) {
      Json line = {{"rows", n}, {"entries", index.size()}, {"method", name_of(method)}};
      try {
        const Spmv made_product = spmv(runtime_.ctx, a, x, method, kSpmvRepeat);
        line["seconds"] = made_product.seconds;
        // Eight vectors share one matrix.
        const auto vectors = static_cast<std::uint64_t>(method == SpmvMethod::eight ? 7 * 2 * 8 * n : 0);
        line["bytes"] = made_product.bytes + vectors;
        const double rate = static_cast<double>(made_product.bytes + vectors) / made_product.seconds;
        line["bytes_per_second"] = rate;
        product_lines_.push_back({std::string(name_of(method)), fmt::format("{}", n),
                                  fmt::format("{:.2f}", 1e6 * made_product.seconds),
                                  fmt::format("{:.0f}", rate / 1e9)});
        if (first.empty()) first = made_product.product;
        for (std::size_t i = 0; i < first.size(); ++i) {
          if (std::abs(first[i] - made_product.product[i]) <= kSameProducts) continue;
          ++different_;
          break;
        }
      } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::device_unavailable) throw;
        line["refused"] = error.what();
        product_lines_.push_back({std::string(name_of(method)), fmt::format("{}", n), "-", "-"});
      }
      products_.push_back(line);
    }
    save();
  }

  // After every line, so that a run that is ended leaves what it has.
  void save() const {
    if (!options_.output.empty()) write_text(options_.output, result().dump(2) + "\n");
  }

  [[nodiscard]] Json result() const {
    Json json = head_;
    json["device"] = runtime_.ctx.device();
    json["threads"] = runtime_.ctx.threads();
    json["different_answers"] = different_;
    json["tables"] = Json::array();
    json["tables"].push_back({{"title", "embeddings by lanczos, K = 9, D = 32"}, {"lines", lines_}});
    json["tables"].push_back({{"title", "a sparse product"}, {"lines", products_}});
    return json;
  }

  const PapersOptions& options_;
  const Runtime runtime_;
  std::vector<Context> contexts_;  // the CPU, and the device where the options take one
  const Json head_ = head_of_results("bench papers lle", options_.commit);
  std::vector<std::vector<std::string>> printed_;
  std::vector<std::vector<std::string>> product_lines_;
  Json lines_ = Json::array();
  Json products_ = Json::array();
  std::int64_t different_ = 0;
};

}  // namespace

void bench_papers_lle(const PapersOptions& options) {
  LlePaper(options).run();
}

}  // namespace vicinal::cli

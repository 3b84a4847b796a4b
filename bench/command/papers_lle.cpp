// See papers_lle.hpp.
#include "command/papers_lle.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/machine.hpp"
#include "base/output.hpp"
#include "command/harness.hpp"
#include "command/lle_surfaces.hpp"
#include "command/papers_lle_plots.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/lle.hpp"
#include "vicinal/sparse.hpp"

namespace vicinal::cli {
namespace {

constexpr double kSameValues = 1e-6;     // of a singular value: clause 17
constexpr double kSameProducts = 1e-13;  // of sums of ten products
constexpr std::int64_t kSpmvRepeat = 20;
constexpr std::int64_t kSevenMore = 112;  // bytes a row: of x and y, seven vectors more

class LlePaper {
 public:
  explicit LlePaper(const PapersOptions& options)
      : options_(options),
        runtime_(make_runtime(options.common)),
        contexts_(cpu_and_device(options.common, runtime_)) {}

  void draw_from_file() const { draw(read_lle_lines(options_.from)); }

  PapersPart run() {
    std::vector<std::string> head = {"surface", "n"};
    for (const Context& ctx : contexts_) {
      head.push_back(fmt::format("{} s", ctx.device()));
      head.push_back("Krylov s");
    }
    head.emplace_back("ratio");
    printed_.push_back(head);
    for (const Shape shape : {Shape::swiss_roll, Shape::s_curve}) {
      for (std::int64_t n = std::min(kPaperRows, options_.most_rows); n <= options_.most_rows; n *= 2) embed(shape, n);
    }
    products();
    if (!options_.svg.empty()) draw(lines_);
    runtime_.progress->clear();
    PapersPart part = result();
    part.text = fmt::format("embeddings, k = 9, d = 32\n{}\nproducts, microseconds\n{}\n", format_table(printed_),
                            format_table(product_lines_));
    return part;
  }

 private:
  void draw(const Json& lines) const { draw_lle_paper(contexts_[0], lines, options_.most_rows, options_.svg); }

  void embed(Shape shape, std::int64_t n) {
    const std::vector<double> rows = paper_surface(runtime_.ctx, shape, n).rows;
    const TableView table(rows.data(), n, kPaperColumns);
    const LleOptions asked{.k = std::min(kPaperNeighbors, n - 1), .solver = LleSolver::lanczos};
    std::vector<std::string> text = {std::string(name_of(shape)), fmt::format("{}", n)};
    std::vector<double> medians;
    std::vector<double> first;
    // Whether a Krylov method found the least values, the direct solver says.
    NeighborGraph graph;
    if (options_.verify) {
      graph = knn(contexts_[0], table, {.k = asked.k});
      LleOptions direct = asked;
      direct.solver = LleSolver::direct;
      first = lle(contexts_[0], table, graph, direct).pieces[0].singular_values;
    }
    for (const Context& ctx : contexts_) {
      Lle found;
      Timings krylov;
      const Timings timings = measure(
          ctx, options_.runs(), [&] { found = lle(ctx, table, asked); },
          [&] { krylov.seconds.push_back(found.solve_seconds); });
      const LlePiece& piece = found.pieces[0];
      if (options_.spoil) found.embedding[0] += 1;
      Verdict verdict;
      if (options_.verify) {
        verdict = ListCheck(table, nullptr, options_.sample).of(graph);
        verdict += check_embedding(rows, kPaperColumns, graph, found);
      }
      verdict_ += verdict;
      if (first.empty()) first = piece.singular_values;
      double apart = 0;
      for (std::size_t c = 0; c < first.size(); ++c) {
        const double error = std::abs(first[c] - piece.singular_values[c]) / first[c];
        apart = std::max(apart, error);
        if (!(error <= kSameValues)) ++different_;
      }
      lines_.push_back({{"surface", name_of(shape)},
                        {"rows", n},
                        {"device", ctx.device()},
                        {"seconds", to_json(timings)},
                        {"krylov_seconds", krylov.median()},
                        {"products", piece.iterations},
                        {"pieces", found.pieces.size()},
                        {"singular_values", piece.singular_values},
                        {"values_apart", apart},
                        {"checked", verdict.checked},
                        {"wrong", verdict.wrong}});
      medians.push_back(timings.median());
      text.push_back(fmt::format("{:.4f}", timings.median()));
      text.push_back(fmt::format("{:.4f}", krylov.median()));
    }
    text.push_back(fmt::format("{:.1f}", medians.front() / medians.back()));
    printed_.push_back(text);
    save();
  }

  // The matrix of standard weights has this pattern; of equal weights here, which changes no byte that is moved.
  void products() {
    const std::int64_t n = std::max<std::int64_t>(options_.spmv_rows, 2);
    const Generated made = generate(runtime_.ctx, {.shape = Shape::swiss_roll, .rows = n, .seed = 1});
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
        Spmv made_product = spmv(runtime_.ctx, a, x, method, kSpmvRepeat);
        line["seconds"] = made_product.seconds;
        // Eight vectors share one matrix.
        const auto vectors = static_cast<std::uint64_t>(method == SpmvMethod::eight ? kSevenMore * n : 0);
        line["bytes"] = made_product.bytes + vectors;
        const double rate = static_cast<double>(made_product.bytes + vectors) / made_product.seconds;
        line["bytes_per_second"] = rate;
        product_lines_.push_back({std::string(name_of(method)), fmt::format("{}", n),
                                  fmt::format("{:.2f}", 1e6 * made_product.seconds),
                                  fmt::format("{:.0f}", rate / 1e9)});
        if (options_.spoil) made_product.product[0] += 1;
        Verdict verdict;
        if (options_.verify) verdict = check_product(a, x, made_product.product);
        line["checked"] = verdict.checked;
        line["wrong"] = verdict.wrong;
        verdict_ += verdict;
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
    if (!options_.output.empty()) write_text(options_.output, result().json.dump(2) + "\n");
  }

  [[nodiscard]] PapersPart result() const {
    Json json = head_;
    json["device"] = runtime_.ctx.device();
    json["threads"] = runtime_.ctx.threads();
    PapersPart part{std::move(json), {}, different_, verdict_};
    note_answers(part);
    part.json["tables"] = Json::array();
    part.json["tables"].push_back({{"title", "embeddings by lanczos, k = 9, d = 32"}, {"lines", lines_}});
    part.json["tables"].push_back({{"title", "a sparse product"}, {"lines", products_}});
    return part;
  }

  const PapersOptions& options_;
  const Runtime runtime_;
  const std::vector<Context> contexts_;
  const Json head_ = head_of_results("bench papers lle", options_.commit);
  std::vector<std::vector<std::string>> printed_;
  std::vector<std::vector<std::string>> product_lines_;
  Json lines_ = Json::array();
  Json products_ = Json::array();
  std::int64_t different_ = 0;
  Verdict verdict_;
};

}  // namespace

PapersPart measure_papers_lle(const PapersOptions& options) {
  return LlePaper(options).run();
}

void draw_papers_lle(const PapersOptions& options) {
  LlePaper(options).draw_from_file();
}

}  // namespace vicinal::cli

// `vicinal lle`: embeds the rows of a table in few dimensions, and other rows among them.
#include "vicinal/lle.hpp"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "common_options.hpp"
#include "input.hpp"
#include "output.hpp"
#include "report/embedding.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

struct LleCommand {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  std::string table;
  std::string queries;
  std::string variant = "standard";
  std::string solver = "automatic";
  std::string pieces = "apart";
  std::string label;
  std::string parameters;
  std::string output;
  std::string report;
  std::int64_t k = 12;
  std::int64_t dim = 2;
  std::int64_t max_steps = LleOptions().max_steps;
  double reg = 1e-3;
  bool no_count = false;

  void run() const;

 private:
  [[nodiscard]] LleOptions options() const;
  void write(const Context& ctx, const Lle& found, const std::vector<double>& others) const;
  void tell_all(const Runtime& runtime, const Lle& found, std::int64_t others, double seconds) const;
};

LleOptions LleCommand::options() const {
  LleOptions options;
  options.k = k;
  options.dim = dim;
  options.variant = lle_variant_from(variant);
  options.reg = reg;
  options.solver = lle_solver_from(solver);
  options.pieces = lle_pieces_from(pieces);
  options.max_steps = max_steps;
  options.certify = !no_count;
  options.metric = metric_from(search.metric);
  options.p = search.p;
  options.method = method_from(search.method);
  return options;
}

void LleCommand::write(const Context& ctx, const Lle& found, const std::vector<double>& others) const {
  if (output.empty()) return;
  const std::vector<double>& points = queries.empty() ? found.embedding : others;
  const auto rows = static_cast<std::int64_t>(points.size()) / dim;
  const ArrayView view{points.data(), "<f8", {rows, dim}};
  const std::filesystem::path path = output;
  if (path.extension() == ".npy") return write_npy(path, view);
  if (path.extension() == ".npz") {
    const auto count = static_cast<std::int64_t>(found.pieces.size());
    std::vector<double> values;
    for (const LlePiece& piece : found.pieces) {
      values.insert(values.end(), piece.singular_values.begin(), piece.singular_values.end());
    }
    const NamedArray arrays[] = {
        {"embedding", view},
        {"piece", {found.piece.data(), "<i8", {static_cast<std::int64_t>(found.piece.size())}}},
        {"singular_values", {values.data(), "<f8", {count, dim}}}};
    return write_npz(path, arrays);
  }
  std::string text = "row";
  for (std::int64_t c = 0; c < dim; ++c) text += fmt::format(",y{}", c);
  text += '\n';
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % 65536 == 0) ctx.check_cancelled();
    text += fmt::format("{}", i);
    for (std::int64_t c = 0; c < dim; ++c) text += fmt::format(",{}", points[static_cast<std::size_t>(i * dim + c)]);
    text += '\n';
  }
  write_text(path, text);
}

Json to_json(const LlePiece& piece) {
  return {{"rows", piece.rows},
          {"solver", name_of(piece.solver)},
          {"singular_values", piece.singular_values},
          {"next", piece.next},
          {"residuals", piece.residuals},
          {"angles", piece.angles},
          {"localization", piece.localization},
          {"norm", piece.norm},
          {"counted", piece.counted < 0 ? Json(nullptr) : Json(piece.counted)},
          {"iterations", piece.iterations},
          {"fill", piece.fill},
          {"flops", piece.flops}};
}

void LleCommand::tell_all(const Runtime& runtime, const Lle& found, std::int64_t others, double seconds) const {
  runtime.progress->clear();
  const auto rows = static_cast<std::int64_t>(found.piece.size());
  if (common.json) {
    Json pieces_told = Json::array();
    for (const LlePiece& piece : found.pieces) pieces_told.push_back(to_json(piece));
    Json json = {{"command", "lle"},
                 {"rows", rows},
                 {"queries", queries.empty() ? Json(nullptr) : Json(others)},
                 {"dim", dim},
                 {"k", k},
                 {"variant", variant},
                 {"error", found.error},
                 {"pieces", pieces_told},
                 {"output", output.empty() ? Json(nullptr) : Json(output)},
                 {"report", report.empty() ? Json(nullptr) : Json(report)},
                 {"seconds", seconds},
                 {"weight_seconds", found.weight_seconds},
                 {"order_seconds", found.order_seconds},
                 {"factor_seconds", found.factor_seconds},
                 {"solve_seconds", found.solve_seconds},
                 {"plan", cli::to_json(found.plan)},
                 {"stats", cli::to_json(found.stats)}};
    if (variant == "standard") json["largest_weight"] = found.largest_weight;
    return print_json(json);
  }
  std::vector<std::vector<std::string>> lines = {{"piece", "rows", "column", "eigenvalue", "residual", "localization"}};
  constexpr std::size_t kPiecesTold = 10;
  for (std::size_t p = 0; p < std::min(kPiecesTold, found.pieces.size()); ++p) {
    const LlePiece& piece = found.pieces[p];
    for (std::size_t c = 0; c < piece.singular_values.size(); ++c) {
      lines.push_back({fmt::format("{}", p), fmt::format("{}", piece.rows), fmt::format("{}", c),
                       fmt::format("{:.4e}", piece.singular_values[c] * piece.singular_values[c]),
                       fmt::format("{:.1e}", piece.residuals[c]), fmt::format("{:.3f}", piece.localization[c])});
    }
  }
  write_stdout(format_table(lines));
  for (const LlePiece& piece : found.pieces) {
    if (piece.counted < 0 || piece.counted == dim) continue;
    tell(runtime, common,
         fmt::format("warning: {} eigenvalues lie below the next one of a piece of {} rows, where {} were found",
                     piece.counted, piece.rows, dim));
  }
  if (found.pieces.size() > 1) {
    tell(runtime, common,
         fmt::format(
             "warning: the graph of {} neighbors is in {} pieces, each embedded on its own; a larger -k may join "
             "them",
             k, format_count(static_cast<std::int64_t>(found.pieces.size()))));
  }
  std::string places = output.empty() ? "" : ", written to " + output;
  if (!report.empty()) places += ", report in " + report;
  tell(runtime, common,
       fmt::format("{} rows embedded in {} dimension{} by {} in {}{}", format_count(rows), dim, dim == 1 ? "" : "s",
                   variant, format_duration(seconds), places));
}

void LleCommand::run() const {
  const auto start = std::chrono::steady_clock::now();
  check_output("-o", output, {".csv", ".npy", ".npz"});
  check_output("--report", report, {".html", ".htm"});
  const Runtime runtime = make_runtime(common);
  const Context& ctx = runtime.ctx;
  ReadOptions reading = read_options(input);
  reading.label = label;
  const Table rows = read_table(ctx, table, reading);
  if (common.explain) return print_plan(common, plan_lle(ctx, rows.view, options()));
  Table truth;
  if (!parameters.empty()) {
    truth = read_table(ctx, parameters, {});
    if (truth.view.rows() != rows.view.rows()) {
      throw Error(ErrorCode::bad_data, fmt::format("--parameters: {} has {} rows, but the table has {}", parameters,
                                                   truth.view.rows(), rows.view.rows()));
    }
  }
  const Lle found = lle(ctx, rows.view, options());
  std::vector<double> others;
  if (!queries.empty()) {
    const Table asked = read_table(ctx, queries, read_options(input));
    others = transform(ctx, Index(ctx, rows.view), found, asked.view);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string text;
  if (!report.empty()) {
    text = cli::report::render({table, &rows.view, parameters.empty() ? nullptr : &truth.view,
                                rows.labels ? &*rows.labels : nullptr, &found, seconds});
  }
  ctx.check_cancelled();
  write(ctx, found, others);
  if (!report.empty()) write_text(report, text);
  tell_all(runtime, found, static_cast<std::int64_t>(others.size()) / dim, seconds);
}

}  // namespace

Command add_lle(const Parser& root) {
  auto command = std::make_shared<LleCommand>();
  LleCommand& lle = *command;
  const Parser app = root.add_subcommand("lle", "Embed rows in few dimensions by locally linear embedding");
  app.add_option("TABLE", lle.table, "Rows to embed").type_name("FILE").required();
  app.add_option("QUERIES", lle.queries, "Other rows, that are placed among those of TABLE and written instead")
      .type_name("FILE");
  const std::string group = "Embedding";
  app.add_option("-k", lle.k, "Neighbors a row").type_name("K").capture_default_str().group(group);
  app.add_option("--dim", lle.dim, "Columns of the embedding").type_name("N").capture_default_str().group(group);
  app.add_choice("--variant", lle.variant, {"standard", "modified", "hessian", "hessian_sklearn", "ltsa"},
                 "What neighborhoods are asked to keep")
      .group(group);
  app.add_option("--reg", lle.reg, "Share of a local Gram's trace that is added to its diagonal")
      .type_name("X")
      .capture_default_str()
      .group(group);
  app.add_choice("--solver", lle.solver, {"automatic", "dense", "direct", "lanczos", "arnoldi"},
                 "How the eigenvectors are found")
      .group(group);
  app.add_option("--max-steps", lle.max_steps, "Products with M after which lanczos and arnoldi give up")
      .type_name("N")
      .capture_default_str()
      .group(group);
  app.add_choice("--pieces", lle.pieces, {"apart", "refuse"}, "What becomes of a neighbor graph in pieces")
      .group(group);
  app.add_flag("--no-count", lle.no_count,
               "Do not count the eigenvalues to prove that none was skipped; saves a second factor")
      .group(group);
  app.add_option("--label", lle.label, "CSV column with labels, that color the report").type_name("COLUMN");
  app.add_option("--parameters", lle.parameters,
                 "True parameters of the rows, as vicinal generate writes them: they color the report, and tell how "
                 "much of them the embedding keeps")
      .type_name("FILE");
  app.add_option("-o,--output", lle.output,
                 "Where to write the embedding: .csv, .npy or .npz (embedding, piece, singular_values)")
      .type_name("FILE");
  app.add_option("--report", lle.report, "Where to write a page with the embedding (.html)").type_name("FILE");
  add_metric_options(app, lle.search);
  add_input_options(app, lle.input);
  add_common_options(app, lle.common);
  app.add_examples(
      {"vicinal generate swiss-roll -n 600 -o swiss.npy && vicinal lle swiss.npy -k 12 --dim 2 --variant "
       "modified -o points.npy --report report.html",
       "vicinal generate s-curve -n 300 -o s.npy && vicinal lle s.npy --variant ltsa --json"});
  return {app, [command] { naming_files(command->table, command->queries, [&] { command->run(); }); },
          &command->common.json};
}

}  // namespace vicinal::cli

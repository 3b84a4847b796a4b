// See supervised_run.hpp.
#include "nearest/supervised_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input.hpp"
#include "base/output.hpp"
#include "base/output_files.hpp"

namespace vicinal::cli {

SupervisedRun::SupervisedRun(const SupervisedCommand& options, Words words)
    : options_(options), words_(std::move(words)) {}

void SupervisedRun::run() {
  const auto start = std::chrono::steady_clock::now();
  options_.check();
  const Runtime runtime = make_runtime(options_.common);
  const Context& ctx = runtime.ctx;
  PlannedInputs inputs(runtime, options_.common);
  const Context rest = options_.plan(inputs);
  fitted_ = options_.model.empty() ? options_.fit_rows(ctx, rest) : load_fitted(ctx, options_.model);
  check_model();
  if (options_.common.explain) return explain_supervised(rest, options_, inputs, fitted_, options_.row_bytes());
  read_test(ctx);
  if (options_.folds != 0) {
    fitted_.chosen = cross_validated(rest);
    fitted_.model->k = fitted_.chosen->k;
  }
  const auto filter = read_filter(ctx, options_.search.filter, index().rows());
  const bool by_k = fitted_.model->k > 0;
  report::NeighborProfile profile;  // only a page shows neighbors
  if (has_test() && !options_.report.empty()) {
    profile = answer_and_keep(rest, filter);
  } else if (has_test() && by_k) {
    answer(rest, knn_of(options_, fitted_, filter));
  } else if (has_test()) {
    answer(rest, radius_of(options_, fitted_, filter), {});
  }
  answered().stats.prepare_seconds = fitted_.prepare_seconds;
  score(ctx);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const std::string shown = options_.report.empty() ? "" : page(profile, seconds);
  ctx.check_cancelled();
  OutputFiles together;
  if (!options_.output.empty()) write(ctx);
  if (!options_.save_model.empty()) save_fitted(ctx, options_.save_model, fitted_);
  if (!options_.report.empty()) write_text(options_.report, shown);
  together.commit();
  runtime.progress->clear();
  print(runtime, seconds);
}

report::NeighborProfile SupervisedRun::answer_and_keep(const Context& rest, const std::vector<std::uint64_t>& filter) {
  const TableView& queries = asked_.table.view;
  const RowBytes bytes = options_.row_bytes();
  report::NeighborProfile profile(bytes.page, queries.rows(), index().rows());
  if (fitted_.model->k > 0) {
    const NeighborGraph graph = knn(rest, index(), queries, knn_of(options_, fitted_, filter));
    answer(rest, graph);
    profile.add(graph);
  } else {
    // Lists of all rows may not fit into memory: each is answered from and kept for the page, then forgotten.
    const std::uint64_t page = report::NeighborProfile::page_bytes(bytes.page, queries.rows(), index().rows());
    const Context search = rest.with_memory_limit(std::max(rest.memory_limit(), page + 1) - page);
    answer(search, radius_of(options_, fitted_, filter),
           [&](std::int64_t /*first*/, const NeighborGraph& lists) { profile.add(lists); });
  }
  return profile;
}

void SupervisedRun::print(const Runtime& runtime, double seconds) {
  const CommonOptions& common = options_.common;
  const Answered found = answered();
  if (common.json) {
    Json json = answer_json(words_.command, found.rows, options_, fitted_);
    add_to(json);
    finish_json(json, options_, has_test() || !fitted_.chosen ? found.plan : fitted_.chosen->plan, found.stats,
                seconds);
    return print_result(std::move(json));
  }
  std::string text;
  if (fitted_.chosen) text = validation_table(*fitted_.chosen, cross_validation_of(options_), words_.score);
  for (const std::string& scores : scores_texts()) text += (text.empty() ? "" : "\n") + scores;
  if (has_test() && !is_scored() && options_.output.empty()) text += answers_text();
  print_text(text);
  if (fitted_.chosen) tell(runtime, common, validation_sentence(*fitted_.chosen, cross_validation_of(options_)));
  if (!has_test()) return tell(runtime, common, fmt::format("{} rows fitted", format_count(index().rows())));
  tell(runtime, common,
       fmt::format("{} rows {} ({})", format_count(found.rows), done_text(seconds), ran_as(found.plan)));
}

}  // namespace vicinal::cli

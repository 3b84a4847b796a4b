// knn_into and classify: searches whose lists need not come to host memory (docs: include/vicinal/knn.hpp,
// classify.hpp). Checks and plan are those of knn.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/index_access.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/seconds.hpp"
#include "ops/common/check.hpp"
#include "ops/nearest/search.hpp"
#include "vicinal/classify.hpp"

namespace vicinal {
namespace {

using ops::SearchRequest;

void check_output(const Context& ctx, const KnnOutput& output) {
  if (output.ids == nullptr || output.distances == nullptr) {
    throw Error(ErrorCode::invalid_argument, "output: ids and distances must not be null");
  }
  if (!kernels::backend_of(ctx).reaches(output.memory)) {
    const char* const why = ctx.device() == "cpu" ? " cannot write; make the context with Context::cuda"
                                                  : " cannot divide; use the one device that it is on";
    throw Error(ErrorCode::device_unavailable, "output: is in CUDA memory, which " + ctx.device() + why);
  }
}

/// A job of lists that go to the caller's memory.
ops::Job job_into(const Context& ctx, const Index& index, SearchRequest& request) {
  request.lists = SearchRequest::Lists::passed_on;
  request.keeps_packed = true;
  ops::Job job = ops::plan_job(ctx, kernels::prepared_of(index), request, true);
  core::require_memory(ctx, job.plan.memory, "knn");
  return job;
}

KnnSummary find_into(const Context& ctx, const Index& index, SearchRequest& request, const KnnOutput& output) {
  check_output(ctx, output);
  const kernels::Backend& backend = kernels::backend_of(ctx);
  ops::Job job = job_into(ctx, index, request);
  backend.nearest().check_queries(ctx, job.task);
  KnnSummary summary{job.task.queries.rows(), index.rows(), job.task.k, job.plan, {}};
  const double seconds = ops::run_job(ctx, job, [&] {
    backend.nearest().search_into(ctx, job.task, {output.ids, output.distances, output.memory}, summary.stats);
  });
  summary.stats.search_seconds = seconds;
  return summary;
}

/// After the checks of labels and weights.
Classification classify_by(const Context& ctx, const Index& index, SearchRequest& request,
                           std::span<const Labels> outputs, const VoteOptions& voting) {
  const kernels::Backend& backend = kernels::backend_of(ctx);
  request.lists = SearchRequest::Lists::passed_on;
  request.voting = &voting;
  request.keeps_packed = true;
  const std::int64_t queries = request.task.queries.rows();
  request.bytes_beside = vote_bytes(ctx, queries, outputs, voting);
  ops::Job job = ops::plan_job(ctx, kernels::prepared_of(index), request, true);
  if (job.holds_lists && !backend.nearest().holds_lists(job.task, nullptr)) {
    job.plan.reason += voting.weights == Weighting::custom
                           ? "; custom weights are a function on the host, so votes are counted there"
                           : "; the devices divide the table's rows, so votes are counted on the host";
  }
  core::require_memory(ctx, job.plan.memory, "classify");
  backend.nearest().check_queries(ctx, job.task);
  Classification result{make_votes(queries, outputs, voting), queries, index.rows(), job.plan, {}};
  const double seconds = ops::run_job(ctx, job, [&] {
    backend.nearest().classify(ctx, job.task, {nullptr, outputs, &voting}, result.votes, result.stats);
  });
  result.stats.search_seconds = seconds;
  return result;
}

/// The same of neighbors within a radius.
Classification classify_within(const Context& ctx, const Index& index, SearchRequest& request,
                               std::span<const Labels> outputs, const VoteOptions& voting, const TakeLists& watch) {
  const std::int64_t queries = request.task.queries.rows();
  request.bytes_beside = vote_bytes(ctx, queries, outputs, voting);
  request.operation = "classify";
  Classification result;
  const RadiusSummary found =
      ops::find_in_batches(ctx, index, request, [&](std::int64_t first, const NeighborGraph& lists) {
        if (result.votes.empty()) result.votes = make_votes(queries, outputs, voting);
        kernels::backend_of(ctx).nearest().vote(ctx, {&lists, outputs, &voting, first}, result.votes);
        if (watch) watch(first, lists);
      });
  result.rows = found.rows;
  result.table_rows = found.table_rows;
  result.plan = found.plan;
  result.stats = found.stats;
  return result;
}

}  // namespace

KnnSummary knn_into(const Context& ctx, const TableView& table, const KnnOptions& options,
                    const KnnOutput& output) try {
  const core::Entry entry;
  SearchRequest request = ops::checked_request(ctx, table, nullptr, options);
  check_output(ctx, output);
  return ops::with_index(ctx, table, [&](const Index& index) { return find_into(ctx, index, request, output); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

KnnSummary knn_into(const Context& ctx, const TableView& table, const TableView& queries, const KnnOptions& options,
                    const KnnOutput& output) try {
  const core::Entry entry;
  SearchRequest request = ops::checked_request(ctx, table, &queries, options);
  check_output(ctx, output);
  return ops::with_index(ctx, table, [&](const Index& index) { return find_into(ctx, index, request, output); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

KnnSummary knn_into(const Context& ctx, const Index& index, const KnnOptions& options, const KnnOutput& output) try {
  const core::Entry entry;
  SearchRequest request = ops::request_of(nullptr, options);
  return find_into(ctx, index, request, output);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

KnnSummary knn_into(const Context& ctx, const Index& index, const TableView& queries, const KnnOptions& options,
                    const KnnOutput& output) try {
  const core::Entry entry;
  SearchRequest request = ops::request_of(&queries, options);
  return find_into(ctx, index, request, output);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

struct RepeatedKnn::State {
  Context ctx;
  Index index;
  ops::Job job;
  std::unique_ptr<kernels::RepeatedSearch> search;  // null: each call is a search of its own

  State(const Context& context, const Index& of, SearchRequest& request)
      : ctx(context), index(of), job(job_into(ctx, index, request)) {
    search = kernels::backend_of(ctx).nearest().repeat(ctx, job.task);
  }

  SearchStats find(const KnnOutput& output) {
    const kernels::NearestBackend& backend = kernels::backend_of(ctx).nearest();
    const kernels::ListMemory lists = {output.ids, output.distances, output.memory};
    SearchStats stats;
    const auto start = std::chrono::steady_clock::now();
    if (search) {
      search->run(lists, stats);
      stats.search_seconds = seconds_since(start);
      return stats;
    }
    backend.check_queries(ctx, job.task);
    const double seconds = ops::run_job(ctx, job, [&] { backend.search_into(ctx, job.task, lists, stats); });
    stats.search_seconds = seconds;
    return stats;
  }
};

RepeatedKnn::RepeatedKnn(const Context& ctx, const Index& index, const TableView& example,
                         const KnnOptions& options) try {
  const core::Entry entry;
  SearchRequest request = ops::request_of(&example, options);
  request.bytes_beside =  // lists of the example
      static_cast<std::uint64_t>(example.rows()) * static_cast<std::uint64_t>(options.k) * 16;
  state_ = std::make_shared<State>(ctx, index, request);
  const auto neighbors = static_cast<std::size_t>(example.rows() * options.k);
  std::vector<std::int64_t> ids(neighbors);
  std::vector<double> distances(neighbors);
  state_->find({ids.data(), distances.data()});
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

const Plan& RepeatedKnn::plan() const noexcept {
  return state_->job.plan;
}

SearchStats RepeatedKnn::find(const TableView& queries, const KnnOutput& output) try {
  const core::Entry entry;
  const Context& ctx = state_->ctx;
  TableView& asked = state_->job.task.queries;
  check_output(ctx, output);
  check_table(ctx, queries, "queries");
  if (queries.rows() != asked.rows() || queries.cols() != asked.cols()) {
    throw Error(ErrorCode::invalid_argument, "queries: " + std::to_string(queries.rows()) + " x " +
                                                 std::to_string(queries.cols()) + ", but the search was made for " +
                                                 std::to_string(asked.rows()) + " x " + std::to_string(asked.cols()));
  }
  asked = queries;
  return state_->find(output);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Classification classify(const Context& ctx, const Index& index, const TableView& queries,
                        std::span<const Labels> outputs, const KnnOptions& options, const VoteOptions& voting) try {
  const core::Entry entry;
  check_weights(voting.weights, voting.custom, options.metric, "vote");
  for (const Labels& labels : outputs) check_labels(labels, index.rows());
  SearchRequest request = ops::request_of(&queries, options);
  return classify_by(ctx, index, request, outputs, voting);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Classification classify(const Context& ctx, const TableView& table, const TableView& queries,
                        std::span<const Labels> outputs, const KnnOptions& options, const VoteOptions& voting) try {
  const core::Entry entry;
  SearchRequest request = ops::checked_request(ctx, table, &queries, options);
  check_weights(voting.weights, voting.custom, options.metric, "vote");
  for (const Labels& labels : outputs) check_labels(labels, table.rows());
  return ops::with_index(ctx, table,
                         [&](const Index& index) { return classify_by(ctx, index, request, outputs, voting); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Classification classify_radius(const Context& ctx, const Index& index, const TableView& queries,
                               std::span<const Labels> outputs, const RadiusOptions& options, const VoteOptions& voting,
                               const TakeLists& watch) try {
  const core::Entry entry;
  check_weights(voting.weights, voting.custom, options.metric, "vote");
  for (const Labels& labels : outputs) check_labels(labels, index.rows());
  SearchRequest request = ops::request_of(&queries, options, kernels::Collect::radius);
  return classify_within(ctx, index, request, outputs, voting, watch);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Classification classify_radius(const Context& ctx, const TableView& table, const TableView& queries,
                               std::span<const Labels> outputs, const RadiusOptions& options,
                               const VoteOptions& voting) try {
  const core::Entry entry;
  check_table(ctx, table, "table");
  check_weights(voting.weights, voting.custom, options.metric, "vote");
  for (const Labels& labels : outputs) check_labels(labels, table.rows());
  SearchRequest request = ops::request_of(&queries, options, kernels::Collect::radius);
  return ops::with_index(ctx, table,
                         [&](const Index& index) { return classify_within(ctx, index, request, outputs, voting, {}); });
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

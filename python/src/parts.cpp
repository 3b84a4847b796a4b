// What vicinal.distributed sends between processes: parts of searches, and questions and answers of k-means, as bytes.
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "interruptible.hpp"
#include "models.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::bytes bytes_of(std::span<const std::byte> bytes) {
  return nb::bytes(static_cast<const void*>(bytes.data()), bytes.size());
}
std::span<const std::byte> span_of(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

/// (first_id, first_query, self, total_rows, total_queries)
PartOptions place_of(const nb::tuple& place) {
  return {.first_id = nb::cast<std::int64_t>(place[0]),
          .first_query = nb::cast<std::int64_t>(place[1]),
          .self = nb::cast<bool>(place[2]),
          .total_rows = nb::cast<std::int64_t>(place[3]),
          .total_queries = nb::cast<std::int64_t>(place[4])};
}

template <class Options, class Search>
nb::object part_call(const char* name, const Fields<Options>& fields, nb::handle table, nb::handle queries,
                     const nb::tuple& place, nb::dict keywords, const Search& search) {
  Call call(name, std::move(keywords));
  call.on_host();
  const auto options = call.options(fields);
  call.refuse_others();
  const Searched searched(call, table);
  const Input query_table = call.table("queries", queries);
  const PartOptions where = place_of(place);
  std::vector<std::byte> bytes;
  call.run([&](const Context& ctx) {
    searched.visit([&](const auto& in) { bytes = part_bytes(ctx, search(ctx, in, query_table.view, options, where)); });
  });
  return bytes_of(bytes);
}

nb::object knn_part_call(nb::handle table, nb::handle queries, const nb::tuple& place, nb::dict keywords) {
  return part_call("knn", knn_fields(), table, queries, place, std::move(keywords),
                   [](const auto&... arguments) { return knn_part(arguments...); });
}
nb::object radius_part_call(nb::handle table, nb::handle queries, const nb::tuple& place, nb::dict keywords) {
  return part_call("radius", radius_fields(), table, queries, place, std::move(keywords),
                   [](const auto&... arguments) { return radius_part(arguments...); });
}
nb::object count_part_call(nb::handle table, nb::handle queries, const nb::tuple& place, nb::dict keywords) {
  return part_call("count", radius_fields(), table, queries, place, std::move(keywords),
                   [](const auto&... arguments) { return count_part(arguments...); });
}

/// Calls work(ctx, sources) with parts in bytes.
template <class Work>
void with_sources(const char* name, const nb::list& parts, nb::dict keywords, const Work& work) {
  Call call(name, std::move(keywords));
  call.on_host();
  call.refuse_others();
  std::vector<nb::bytes> held;
  for (const nb::handle part : parts) held.push_back(nb::cast<nb::bytes>(part));
  work(call, [&](const Context& ctx) {
    std::vector<PartSource> sources;
    for (std::size_t i = 0; i < held.size(); ++i) {
      sources.push_back(open_part_bytes(ctx, span_of(held[i]), "part " + std::to_string(i)));
    }
    return sources;
  });
}

nb::object merge_call(const nb::list& parts, nb::dict keywords) {
  nb::object answer;
  with_sources("merge", parts, std::move(keywords), [&](Call& call, const auto& opened) {
    auto graph = std::make_shared<NeighborGraph>();
    call.run([&](const Context& ctx) { *graph = merge(ctx, std::span<const PartSource>(opened(ctx))); });
    answer = graph_answer(call, graph);
  });
  return answer;
}

nb::object merge_counts_call(const nb::list& parts, nb::dict keywords) {
  nb::object answer;
  with_sources("merge_counts", parts, std::move(keywords), [&](Call& call, const auto& opened) {
    auto counts = std::make_shared<NeighborCounts>();
    call.run([&](const Context& ctx) { *counts = merge_counts(ctx, std::span<const PartSource>(opened(ctx))); });
    answer = Answer(call, std::shared_ptr<const NeighborCounts>(counts))
                 .array("counts", counts->counts)
                 .plan(counts->plan)
                 .stats(counts->stats)
                 .done();
  });
  return answer;
}

/// The graphs of consecutive queries as one. All are of the same search; the plan is the first one's.
nb::object join_call(const nb::list& graphs, nb::dict keywords) {
  Call call("join", std::move(keywords));
  call.on_host();
  call.refuse_others();
  std::vector<std::shared_ptr<const NeighborGraph>> held;
  for (const nb::handle graph : graphs) held.push_back(call.expect<NeighborGraph>("graph", graph, "a NeighborGraph"));
  if (held.empty()) throw Error(ErrorCode::invalid_argument, "graphs: there are none");
  auto joined = std::make_shared<NeighborGraph>();
  call.run([&](const Context& ctx) {
    const NeighborGraph& first = *held.front();
    std::size_t entries = 0;
    std::uint64_t rows = 0;
    for (const auto& graph : held) {
      entries += graph->ids.size();
      rows += static_cast<std::uint64_t>(graph->rows);
    }
    const std::uint64_t bytes = entries * 16 + (first.is_csr() ? rows * 8 : 0);
    if (bytes > ctx.memory_limit()) {
      throw Error(ErrorCode::over_memory, "the lists of all queries take " + std::to_string(bytes) +
                                              " bytes, but the memory limit is " + std::to_string(ctx.memory_limit()));
    }
    joined->table_rows = first.table_rows;
    joined->k = first.k;
    joined->metric = first.metric;
    joined->p = first.p;
    joined->plan = first.plan;
    joined->ids.reserve(entries);
    joined->distances.reserve(entries);
    if (first.is_csr()) joined->offsets.push_back(0);
    for (const auto& graph : held) {
      ctx.check_cancelled();
      const auto before = static_cast<std::int64_t>(joined->ids.size());
      for (std::size_t i = 1; i < graph->offsets.size(); ++i) joined->offsets.push_back(before + graph->offsets[i]);
      joined->ids.insert(joined->ids.end(), graph->ids.begin(), graph->ids.end());
      joined->distances.insert(joined->distances.end(), graph->distances.begin(), graph->distances.end());
      joined->rows += graph->rows;
      joined->stats.distinct_rows = graph->stats.distinct_rows;
      joined->stats.survivors += graph->stats.survivors;
      joined->stats.escalated += graph->stats.escalated;
      joined->stats.uncertified += graph->stats.uncertified;
      joined->stats.prepare_seconds += graph->stats.prepare_seconds;
      joined->stats.search_seconds += graph->stats.search_seconds;
      joined->stats.selection_seconds += graph->stats.selection_seconds;
    }
  });
  return graph_answer(call, joined);
}

/// A shard, what it borrows, and the context that it answers in.
struct HeldShard {
  std::unique_ptr<Session> session;
  std::vector<std::shared_ptr<const void>> storage;
  std::vector<double> weights;
  std::unique_ptr<KMeansShard> shard;
  mutable std::atomic_flag busy;
};

nb::object shard_call(nb::handle table, std::int64_t first_row, nb::dict keywords) {
  Call call("kmeans", std::move(keywords));
  call.on_host();
  auto held = std::make_shared<HeldShard>();
  if (const nb::object given = call.keyword("weights")) {
    const auto weights = call.numbers("weights", given);
    held->weights.assign(weights.begin(), weights.end());
  }
  call.refuse_others();
  const Input input = call.table("table", table);
  call.run([&](const Context& ctx) {
    const Input rows = in_memory(ctx, input);
    held->storage = {input.storage, rows.storage};
    held->shard = std::make_unique<KMeansShard>(ctx, rows.view, first_row, held->weights);
  });
  held->session = call.take_session();
  return Answer(call, std::shared_ptr<const HeldShard>(held)).done();
}

nb::object answer_call(nb::handle shard, const nb::bytes& question) {
  Call call("kmeans", {});
  const auto held = call.expect<HeldShard>("shard", shard, "a shard of k-means");
  if (held->busy.test_and_set()) throw Error(ErrorCode::invalid_argument, "kmeans: another thread asks this shard");
  const auto asked = span_of(question);
  std::vector<std::byte> answer;
  try {
    run_interruptibly([&] { answer = held->shard->answer(asked); }, held->session->context().cancel_token());
  } catch (...) {
    held->busy.clear();
    throw;
  }
  held->busy.clear();
  return bytes_of(answer);
}

/// `ask` returns the answers [shards] to a question, all of them bytes.
nb::object asked_call(const std::vector<std::int64_t>& rows, std::int64_t cols, const nb::callable& ask,
                      nb::dict keywords) {
  Call call("kmeans", std::move(keywords));
  call.on_host();
  const auto options = call.options(kmeans_fields());
  call.refuse_others();
  auto model = std::make_shared<KMeansModel>();
  call.run([&](const Context& ctx) {
    const auto ask_shards = [&](std::span<const std::byte> question) {
      std::vector<std::vector<std::byte>> answers;
      call.ask_python([&] {
        for (const nb::handle item : nb::list(ask(bytes_of(question)))) {
          const auto bytes = nb::cast<nb::bytes>(item);
          const auto answer = span_of(bytes);
          answers.emplace_back(answer.begin(), answer.end());
        }
      });
      return answers;
    };
    model->fitted = kmeans(ctx, rows, cols, ask_shards, options);
  });
  return kmeans_answer(call, model);
}

/// Bytes that a call has by default on this machine.
std::uint64_t memory_limit() {
  return Context::cpu({.threads = 1}).memory_limit();
}

}  // namespace

void bind_parts(nb::module_& module) {
  module.def("knn_part", &knn_part_call, any("table"), any("queries"), nb::arg("place"), nb::arg("keywords"));
  module.def("radius_part", &radius_part_call, any("table"), any("queries"), nb::arg("place"), nb::arg("keywords"));
  module.def("count_part", &count_part_call, any("table"), any("queries"), nb::arg("place"), nb::arg("keywords"));
  module.def("merge", &merge_call, nb::arg("parts"), nb::arg("keywords"));
  module.def("merge_counts", &merge_counts_call, nb::arg("parts"), nb::arg("keywords"));
  module.def("join", &join_call, nb::arg("graphs"), nb::arg("keywords"));
  module.def("kmeans_shard", &shard_call, any("table"), nb::arg("first_row"), nb::arg("keywords"));
  module.def("kmeans_answer", &answer_call, any("shard"), nb::arg("question"));
  module.def("kmeans_asked", &asked_call, nb::arg("rows"), nb::arg("cols"), nb::arg("ask"), nb::arg("keywords"));
  module.def("memory_limit", &memory_limit);
}

}  // namespace vicinal::python

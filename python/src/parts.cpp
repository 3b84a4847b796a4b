// Parts of searches in shards, and their merge.
#include <filesystem>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// `search` is the library's function, with a context, a table or an index, queries, options and the place.
template <class Options, class Search>
nb::object part_call(const char* name, const Fields<Options>& fields, nb::handle shard, nb::handle queries,
                     nb::dict keywords, const Search& search) {
  Call call(name, std::move(keywords));
  const auto options = call.options(fields);
  const auto place = call.options(part_fields());
  call.refuse_others();
  const Searched searched(call, shard);
  const std::optional<Input> query_table = call.table("queries", queries);
  auto part = std::make_shared<NeighborPart>();
  call.run(
      [&](const Context& ctx) {
        searched.visit([&](const auto& in) { *part = search(ctx, in, query_table->view, options, place); });
      },
      searched.operations(query_table, options.metric));
  return part_answer(call, part);
}

nb::object knn_part_call(nb::handle shard, nb::handle queries, nb::dict keywords) {
  return part_call("knn_part", knn_fields(), shard, queries, std::move(keywords),
                   [](const auto&... arguments) { return knn_part(arguments...); });
}

nb::object radius_part_call(nb::handle shard, nb::handle queries, nb::dict keywords) {
  return part_call("radius_part", radius_fields(), shard, queries, std::move(keywords),
                   [](const auto&... arguments) { return radius_part(arguments...); });
}

nb::object count_part_call(nb::handle shard, nb::handle queries, nb::dict keywords) {
  return part_call("count_part", radius_fields(), shard, queries, std::move(keywords),
                   [](const auto&... arguments) { return count_part(arguments...); });
}

/// `parts`: parts, or paths of their files.
nb::object merge_call(const nb::list& parts, nb::dict keywords) {
  Call call("merge", std::move(keywords));
  call.refuse_others();
  std::vector<std::shared_ptr<const NeighborPart>> held;  // null: a file
  std::vector<std::string> files;
  for (const nb::handle part : parts) {
    const bool is_file = nb::isinstance<nb::str>(part);
    files.push_back(is_file ? nb::cast<std::string>(part) : "");
    held.push_back(is_file ? nullptr : call.expect<NeighborPart>("parts", part, "Parts or paths"));
  }
  auto graph = std::make_shared<NeighborGraph>();
  auto counts = std::make_shared<NeighborCounts>();
  bool has_counts = false;
  call.run([&](const Context& ctx) {
    std::vector<PartSource> sources;
    for (std::size_t i = 0; i < files.size(); ++i) {
      sources.push_back(held[i] ? source_of(ctx, *held[i]) : open_part(ctx, files[i]));
    }
    has_counts = !sources.empty() && sources.front().info.kind == PartKind::count;
    if (has_counts) {
      *counts = merge_counts(ctx, sources);
    } else {
      *graph = merge(ctx, sources);
    }
  });
  return has_counts ? counts_answer(call, counts) : graph_answer(call, graph);
}

}  // namespace

nb::object part_answer(const Call& call, std::shared_ptr<const NeighborPart> part) {
  const PartInfo& info = part->info;
  Answer answer(call, part);
  answer.text("kind", name_of(info.kind))
      .value("first_id", info.place.first_id)
      .value("rows", info.rows)
      .value("total_rows", info.place.total_rows)
      .value("first_query", info.place.first_query)
      .value("queries", info.queries)
      .value("total_queries", info.place.total_queries)
      .value("self_excluded", info.place.self)
      .value("cols", info.cols)
      .text("metric", name_of(info.metric))
      .value("p", info.p)
      .value("k", info.k)
      .array("ids", part->ids)
      .array("keys", part->keys)
      .array("counts", part->counts)
      .plan(part->plan)
      .stats(part->stats);
  if (part->offsets.empty()) {
    answer.value("offsets", nb::none());
  } else {
    answer.array("offsets", part->offsets);
  }
  return answer.done();
}

void bind_parts(nb::module_& module) {
  module.def("knn_part", &knn_part_call, any("shard"), any("queries"), nb::arg("keywords"));
  module.def("radius_part", &radius_part_call, any("shard"), any("queries"), nb::arg("keywords"));
  module.def("count_part", &count_part_call, any("shard"), any("queries"), nb::arg("keywords"));
  module.def("merge", &merge_call, nb::arg("parts"), nb::arg("keywords"));
}

}  // namespace vicinal::python

// knn, radius, count, Index, and graphs that Python makes of arrays.
#include <algorithm>
#include <cmath>

#include "answer.hpp"
#include "functions.hpp"
#include "graphs.hpp"
#include "options.hpp"
#include "searched.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

/// `search` is the library's function, with a context, an index or a table, queries where there are any, and options.
template <class Options, class Search>
nb::object search_call(const char* name, const Fields<Options>& fields, nb::handle table, nb::handle queries,
                       nb::dict keywords, const Search& search) {
  Call call(name, std::move(keywords));
  const auto options = call.options(fields);
  call.refuse_others();
  const Searched searched(call, table);
  const auto query_table = optional_table(call, "queries", queries);
  auto graph = std::make_shared<NeighborGraph>();
  call.run(
      [&](const Context& ctx) {
        searched.visit([&](const auto& in) {
          *graph = query_table ? search(ctx, in, query_table->view, options) : search(ctx, in, options);
        });
      },
      searched.operations(query_table, options.metric));
  return graph_answer(call, graph);
}

nb::object knn_call(nb::handle table, nb::handle queries, nb::dict keywords) {
  return search_call("knn", knn_fields(), table, queries, std::move(keywords),
                     [](const auto&... arguments) { return knn(arguments...); });
}

/// `written`: addresses in device memory of ids and distances, and their shape [rows, k].
nb::object knn_into_call(nb::handle table, nb::handle queries, const nb::tuple& written, nb::dict keywords) {
  Call call("knn", std::move(keywords));
  const auto options = call.options(knn_fields());
  call.refuse_others();
  const Searched searched(call, table);
  const auto query_table = optional_table(call, "queries", queries);
  const auto pointer = [&](int at) {  // NOLINTNEXTLINE(performance-no-int-to-ptr): the interface says it by number
    return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(written[at]));
  };
  const KnnOutput output{static_cast<std::int64_t*>(pointer(0)), static_cast<double*>(pointer(1)), Memory::cuda};
  const std::int64_t rows = query_table ? query_table->view.rows() : searched.rows();
  if (nb::cast<std::int64_t>(written[2]) != rows || nb::cast<std::int64_t>(written[3]) != options.k) {
    throw Error(ErrorCode::internal, "knn: arrays of another shape than the lists'");
  }
  KnnSummary summary;
  call.run([&](const Context& ctx) {
    searched.visit([&](const auto& in) {
      summary =
          query_table ? knn_into(ctx, in, query_table->view, options, output) : knn_into(ctx, in, options, output);
    });
  });
  nb::dict fields;
  fields["copied"] = call.copied();
  fields["rows"] = summary.rows;
  fields["table_rows"] = summary.table_rows;
  fields["k"] = summary.k;
  fields["metric"] = std::string(name_of(options.metric)).c_str();
  fields["p"] = options.p;
  fields["plan"] = dict_of(summary.plan);
  fields["stats"] = dict_of(summary.stats);
  return fields;
}

nb::object radius_call(nb::handle table, nb::handle queries, nb::dict keywords) {
  return search_call("radius", radius_fields(), table, queries, std::move(keywords),
                     [](const auto&... arguments) { return radius(arguments...); });
}

nb::object count_call(nb::handle table, nb::handle queries, nb::dict keywords) {
  Call call("count", std::move(keywords));
  const auto options = call.options(radius_fields());
  call.refuse_others();
  const Searched searched(call, table);
  const auto query_table = optional_table(call, "queries", queries);
  auto counts = std::make_shared<NeighborCounts>();
  call.run(
      [&](const Context& ctx) {
        const Index index = searched.index(ctx);
        *counts = query_table ? count(ctx, index, query_table->view, options) : count(ctx, index, options);
      },
      searched.operations(query_table, options.metric));
  return Answer(call, std::shared_ptr<const NeighborCounts>(counts))
      .array("counts", counts->counts)
      .plan(counts->plan)
      .stats(counts->stats)
      .done();
}

nb::object index_call(nb::handle table, nb::dict keywords) {
  Call call("Index", std::move(keywords));
  const auto options = call.options(index_fields());
  call.refuse_others();
  const Input input = call.table("table", table);
  std::shared_ptr<const HeldIndex> held;
  call.run([&](const Context& ctx) {
    held =
        std::make_shared<HeldIndex>(HeldIndex{Index(ctx, input.view, options), options.copy ? nullptr : input.storage});
  });
  return index_answer(call, held);
}

/// Throws `bad_data` for ids that are no rows of a table and for distances that are NaN: what reads a graph relies on
/// that.
void check_graph(const NeighborGraph& graph) {
  for (std::int64_t i = 0; i < graph.rows; ++i) {
    for (const std::int64_t id : graph.ids_of(i)) {
      if (id < 0 || id >= graph.table_rows) {
        throw Error(ErrorCode::bad_data, "ids: row " + std::to_string(i) + " lists " + std::to_string(id) +
                                             ", but the table has rows 0 to " + std::to_string(graph.table_rows - 1));
      }
    }
    for (const double distance : graph.distances_of(i)) {
      if (std::isnan(distance)) throw Error(ErrorCode::bad_data, "distances: NaN in row " + std::to_string(i));
    }
  }
}

/// Copies arrays: [rows, k] where `offsets` is None, else compressed rows.
nb::object graph_call(nb::handle ids, nb::handle distances, nb::handle offsets, std::int64_t rows, nb::dict keywords) {
  Call call("NeighborGraph.of", std::move(keywords));
  auto graph = std::make_shared<NeighborGraph>();
  const nb::object table_rows = call.keyword("table_rows");
  if (!table_rows) refuse("table_rows", nb::none(), "the number of the table's rows");
  Setting{"table_rows", table_rows, call}.read(graph->table_rows);
  if (const nb::object metric = call.keyword("metric")) Setting{"metric", metric, call}.read(graph->metric);
  if (const nb::object p = call.keyword("p")) Setting{"p", p, call}.read(graph->p);
  call.refuse_others();
  const auto copy = [&](auto from, auto& to) {
    to.assign(from.begin(), from.end());
    call.count_copied(static_cast<std::int64_t>(from.size_bytes()));
  };
  copy(call.integers("ids", ids), graph->ids);
  copy(call.numbers("distances", distances), graph->distances);
  graph->rows = rows;
  const auto listed = static_cast<std::int64_t>(graph->ids.size());
  if (graph->distances.size() != graph->ids.size()) {
    throw Error(ErrorCode::invalid_argument, "distances: " + std::to_string(graph->distances.size()) + " values for " +
                                                 std::to_string(listed) + " ids");
  }
  if (offsets.is_none()) {
    graph->k = rows == 0 ? 0 : listed / rows;
  } else {
    copy(call.integers("offsets", offsets), graph->offsets);
    const auto& at = graph->offsets;
    if (rows < 0 || static_cast<std::int64_t>(at.size()) != rows + 1 || at.front() != 0 || at.back() != listed ||
        !std::is_sorted(at.begin(), at.end())) {
      throw Error(ErrorCode::invalid_argument,
                  "offsets: expected rows + 1 ascending numbers from 0 to the number of ids");
    }
  }
  check_graph(*graph);
  return graph_answer(call, graph);
}

nb::object symmetrize_call(nb::handle graph, nb::dict keywords) {
  Call call("symmetrize", std::move(keywords));
  Symmetry symmetry = Symmetry::either;
  if (const nb::object given = call.keyword("symmetry")) Setting{"symmetry", given, call}.read(symmetry);
  call.refuse_others();
  const auto held = call.expect<NeighborGraph>("graph", graph, "a NeighborGraph");
  auto result = std::make_shared<NeighborGraph>();
  call.run([&](const Context& ctx) { *result = symmetrize(ctx, *held, symmetry); });
  return graph_answer(call, result);
}

nb::object with_self_call(nb::handle graph, nb::dict keywords) {
  Call call("with_self", std::move(keywords));
  call.refuse_others();
  const auto held = call.expect<NeighborGraph>("graph", graph, "a NeighborGraph");
  auto result = std::make_shared<NeighborGraph>();
  call.run([&](const Context& ctx) { *result = with_self(ctx, *held); });
  return graph_answer(call, result);
}

}  // namespace

nb::object graph_answer(const Call& call, std::shared_ptr<const NeighborGraph> graph) {
  Answer answer(call, graph);
  answer.value("rows", graph->rows)
      .value("table_rows", graph->table_rows)
      .value("k", graph->k)
      .text("metric", name_of(graph->metric))
      .value("p", graph->p)
      .plan(graph->plan)
      .stats(graph->stats);
  if (graph->is_csr()) {
    answer.array("ids", graph->ids).array("distances", graph->distances).array("offsets", graph->offsets);
  } else {
    answer.array("ids", graph->ids, {graph->rows, graph->k})
        .array("distances", graph->distances, {graph->rows, graph->k})
        .value("offsets", nb::none());
  }
  return answer.done();
}

nb::object index_answer(const Call& call, std::shared_ptr<const HeldIndex> held) {
  const Index& index = held->index;
  return Answer(call, held)
      .value("rows", index.rows())
      .value("cols", index.cols())
      .text("dtype", name_of(index.table().dtype()))
      .done();
}

void bind_nearest(nb::module_& module) {
  module.def("knn", &knn_call, any("table"), any("queries"), nb::arg("keywords"));
  module.def("knn_into", &knn_into_call, any("table"), any("queries"), nb::arg("written"), nb::arg("keywords"));
  module.def("radius", &radius_call, any("table"), any("queries"), nb::arg("keywords"));
  module.def("count", &count_call, any("table"), any("queries"), nb::arg("keywords"));
  module.def("index", &index_call, any("table"), nb::arg("keywords"));
  module.def("graph", &graph_call, any("ids"), any("distances"), any("offsets"), any("rows"), nb::arg("keywords"));
  module.def("symmetrize", &symmetrize_call, any("graph"), nb::arg("keywords"));
  module.def("with_self", &with_self_call, any("graph"), nb::arg("keywords"));
}

}  // namespace vicinal::python

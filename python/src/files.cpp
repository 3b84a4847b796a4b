// read, write and generate.
#include <nanobind/stl/vector.h>

#include <utility>

#include "answer.hpp"
#include "functions.hpp"
#include "options.hpp"

namespace nb = nanobind;

namespace vicinal::python {
namespace {

nb::object read_call(const std::string& path, nb::dict keywords) {
  Call call("read", std::move(keywords));
  const ReadOptions options = call.options(read_fields());
  call.refuse_others();
  auto table = std::make_shared<Table>();
  call.run([&](const Context& ctx) { *table = read_table(ctx, path, options); });
  const TableView& view = table->view;
  Answer answer(call, std::shared_ptr<const Table>(table));
  answer.value("rows", view.rows())
      .value("cols", view.cols())
      .text("dtype", name_of(view.dtype()))
      .value("columns", table->columns)
      .value("categories", table->categories)
      .value("shape", table->shape)
      .text("format", name_of(table->format))
      .value("notes", table->notes)
      .value("labels", nb::none());
  if (table->labels) {
    const Labels& labels = *table->labels;
    answer.array("codes", labels.codes);
    nb::list classes;
    for (std::int64_t code = 0; code < labels.class_count(); ++code) {
      if (labels.is_text()) {
        classes.append(std::get<std::vector<std::string>>(labels.classes)[code]);
      } else {
        classes.append(std::get<std::vector<std::int64_t>>(labels.classes)[code]);
      }
    }
    answer.value("classes", nb::module_::import_("numpy").attr("array")(classes));
  }
  return answer.done();
}

/// The address, strides and type of a table's rows, for a NumPy array that shows them (`__array_interface__`).
nb::object layout_of(nb::handle table) {
  const Native* const native = native_of(table);
  if (native == nullptr || *native->type != typeid(Table)) refuse("table", table, "a Table");
  const TableView& view = static_cast<const Table*>(native->value.get())->view;
  const std::int64_t size = size_of(view.dtype());
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(view.data()), view.row_stride() * size,
                        view.col_stride() * size);
}

void write_call(const std::string& path, nb::handle content, nb::dict keywords) {
  Call call("write", std::move(keywords));
  if (const auto graph = call.native<NeighborGraph>(content)) {
    call.refuse_others();
    call.run([&](const Context&) { write_graph(path, *graph); });
    return;
  }
  const WriteOptions options = call.options(write_fields());
  call.refuse_others();
  if (const auto table = call.native<Table>(content)) {
    call.run([&](const Context& ctx) { write_table(ctx, path, *table, options); });
    return;
  }
  const Input input = call.host_table("table", content);
  Table table;
  table.view = input.view;
  table.shape = {input.view.rows(), input.view.cols()};
  call.run([&](const Context& ctx) { write_table(ctx, path, table, options); });
}

nb::object generate_call(nb::handle shape, nb::dict keywords) {
  Call call("generate", std::move(keywords));
  GenerateOptions options;
  Setting{"shape", shape, call}.read(options.shape);
  options = call.options(generate_fields(), options);
  call.refuse_others();
  auto generated = std::make_shared<Generated>();
  call.run([&](const Context& ctx) { *generated = generate(ctx, options); });
  Answer answer(call, std::shared_ptr<const Generated>(generated));
  answer.array("points", generated->points, {generated->rows, generated->cols});
  if (generated->parameters.empty()) {
    answer.value("parameters", nb::none());
  } else {
    answer.array("parameters", generated->parameters, {generated->rows, 2});
  }
  if (generated->labels.empty()) {
    answer.value("labels", nb::none());
  } else {
    answer.array("labels", generated->labels);
  }
  return answer.done();
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("read", &read_call, nb::arg("path"), nb::arg("keywords"));
  module.def("table_layout", &layout_of, any("table"));
  module.def("write", &write_call, nb::arg("path"), any("content"), nb::arg("keywords"));
  module.def("generate", &generate_call, any("shape"), nb::arg("keywords"));
}

}  // namespace vicinal::python

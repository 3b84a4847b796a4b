// write_table: what the file is to be, whether it can hold the table, then its writer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "io/bytes.hpp"
#include "io/csv_layout.hpp"
#include "io/format.hpp"
#include "io/hdf5.hpp"
#include "io/id_array.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/table_output.hpp"

namespace vicinal {
namespace {

[[noreturn]] void unfit(const std::filesystem::path& path, std::string_view what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cannot write '{}': {}", path.string(), what));
}

bool keeps_shape(FileFormat format) {
  return format == FileFormat::npy || format == FileFormat::npz || format == FileFormat::idx ||
         format == FileFormat::hdf5;
}

/// Element types of a format, in the order in which they widen; empty for text.
std::vector<io::Stored> types_of(FileFormat format) {
  using io::Stored;
  switch (format) {
    case FileFormat::npy:
    case FileFormat::npz:
    case FileFormat::hdf5:
      return {Stored::uint8, Stored::float16, Stored::bfloat16, Stored::float32, Stored::float64};
    case FileFormat::idx:
      return {Stored::uint8, Stored::float32, Stored::float64};
    case FileFormat::fvecs:
    case FileFormat::kmeans_binary:
      return {Stored::float32};
    case FileFormat::bvecs:
      return {Stored::uint8};
    case FileFormat::ivecs:
      return {Stored::int32};
    default:
      return {Stored::float64};
  }
}

/// The type asked for; else the table's own, the least wider one, or the only one.
io::Stored choose_type(const std::filesystem::path& path, FileFormat format, const Table& table,
                       const WriteOptions& options) {
  const std::vector<io::Stored> types = types_of(format);
  const auto named = [&](DType dtype) {
    return std::find_if(types.begin(), types.end(),
                        [&](io::Stored type) { return io::name_of(type) == name_of(dtype); });
  };
  if (options.dtype) {
    const auto found = named(*options.dtype);
    if (found != types.end()) return *found;
    std::vector<std::string_view> names;
    names.reserve(types.size());
    for (const io::Stored type : types) names.push_back(io::name_of(type));
    unfit(path, fmt::format("{} holds {}, not {}", name_of(format), fmt::join(names, ", "), name_of(*options.dtype)));
  }
  if (const auto found = named(table.view.dtype()); found != types.end()) return *found;
  if (types.size() == 1) return types[0];
  return *named(DType::float32);  // idx: only the 16-bit types are not its own
}

/// Whether every class is a number, as libsvm's labels are.
bool are_numbers(const Labels& labels) {
  for (std::int64_t c = 0; c < labels.class_count(); ++c) {
    double value = 0;
    if (io::parse_number(labels.name_of(c), &value) != io::NumberKind::number) return false;
  }
  return true;
}

/// Whether the labels have a place; throws where they have none and may not be left out.
bool takes_labels(const std::filesystem::path& path, FileFormat format, const Table& table, bool drop) {
  if (!table.labels) return false;
  const bool whole = !table.labels->is_text();
  if (io::has_named_columns(format)) return true;
  if (format == FileFormat::libsvm && are_numbers(*table.labels)) return true;
  if ((format == FileFormat::npz || format == FileFormat::hdf5) && whole) return true;
  if (!drop) {
    const bool has_place = format == FileFormat::libsvm || format == FileFormat::npz || format == FileFormat::hdf5;
    unfit(path, fmt::format("{} has no place for the labels{} (drop_labels leaves them out)", name_of(format),
                            has_place ? ", which are text" : ""));
  }
  return false;
}

/// Throws where the ids have no place.
void require_place_for_ids(const std::filesystem::path& path, FileFormat format, const Table& table) {
  if (!table.ids) return;
  if (table.ids->size() != table.view.rows()) {
    unfit(path, fmt::format("the table has {} ids for {} rows", table.ids->size(), table.view.rows()));
  }
  if (io::has_named_columns(format) || format == FileFormat::npz) return;
  unfit(path, fmt::format("{} has no place for the ids of rows; CSV, JSON lines and npz have", name_of(format)));
}

/// The elements in one piece: where they lie, or copied.
struct Elements {
  const void* data = nullptr;
  std::shared_ptr<const void> storage;
};

Elements gather(const io::TableOutput& output, std::string_view dtype) {
  const TableView& view = output.table.view;
  const bool in_place = io::name_of(output.type) == name_of(view.dtype()) && !view.is_block_source() &&
                        core::is_row_contiguous(view) && view.row_stride() == view.cols();
  if (in_place) return {view.data(), nullptr};
  const std::int64_t row_bytes = view.cols() * io::size_of(output.type);
  const std::uint64_t bytes = static_cast<std::uint64_t>(view.rows()) * static_cast<std::uint64_t>(row_bytes);
  const std::string job = fmt::format("writing '{}' as {}", output.path.string(), dtype);
  core::require_memory(output.ctx, bytes, job);
  const std::shared_ptr<unsigned char> all = io::allocate(bytes, job);
  const std::int64_t block = std::max<std::int64_t>(1, (std::int64_t{1} << 18) / view.cols());
  const std::int64_t blocks = (view.rows() + block - 1) / block;
  const auto task = [&](std::int64_t i) {
    io::encode_elements(output, i * block, std::min(view.rows(), (i + 1) * block), all.get() + i * block * row_bytes);
  };
  if (view.is_block_source()) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      output.ctx.check_cancelled();
      task(i);
    }
  } else {
    core::parallel_for(output.ctx, blocks, [&](std::int64_t i, int) { task(i); });
  }
  return {all.get(), all};
}

std::string numpy_type(io::Stored type) {
  switch (type) {
    case io::Stored::uint8:
      return "|u1";
    case io::Stored::float16:
      return "<f2";
    case io::Stored::bfloat16:
      return "<V2";
    case io::Stored::float32:
      return "<f4";
    default:
      return "<f8";
  }
}

void write_arrays(const io::TableOutput& output, io::PackedFile& file, bool with_labels) {
  const std::string dtype = numpy_type(output.type);
  std::vector<std::int64_t> shape = output.table.shape;
  // The table is found as the only array of two axes where there are others.
  if (with_labels || output.table.ids) shape = {output.table.view.rows(), output.table.view.cols()};
  if (output.format == FileFormat::npy) {
    file.write(io::make_npy_header({nullptr, dtype, shape}));
    return io::write_rows(output, file, [&](std::int64_t begin, std::int64_t end, std::string& out) {
      out.resize(static_cast<std::size_t>((end - begin) * output.table.view.cols() * io::size_of(output.type)));
      io::encode_elements(output, begin, end, reinterpret_cast<unsigned char*>(out.data()));
    });
  }
  const Elements elements = gather(output, dtype);
  std::vector<NamedArray> arrays = {{"table", {elements.data, dtype, shape}}};
  std::vector<std::int64_t> labels;
  if (with_labels) {
    const auto& classes = std::get<std::vector<std::int64_t>>(output.table.labels->classes);
    labels.reserve(output.table.labels->codes.size());
    for (const std::int32_t code : output.table.labels->codes) {
      labels.push_back(classes[static_cast<std::size_t>(code)]);
    }
    arrays.push_back({"labels", {labels.data(), "<i8", {static_cast<std::int64_t>(labels.size())}}});
  }
  std::optional<io::IdArray> ids;
  if (output.table.ids) {
    ids.emplace(output.ctx, output.path.string(), *output.table.ids);
    arrays.push_back({"row_ids", ids->view()});
  }
  if (output.format == FileFormat::npz) return io::write_npz_members(file, arrays);
  const io::Bytes image = io::make_hdf5(output.ctx, arrays, output.path.string());
  file.write(image.data, image.size);
}

}  // namespace

void write_table(const Context& ctx, const std::filesystem::path& path, const Table& given,
                 const WriteOptions& options) try {
  const core::Entry entry;
  const std::optional<FileFormat> format = options.format ? options.format : format_of_suffix(path);
  if (!format) {
    unfit(path,
          "its suffix is none of .npy .npz .csv .tsv .idx .fvecs .bvecs .ivecs .libsvm .svm .h5 .hdf5 "
          ".kmeans-text .kmeans-binary .jsonl (nor one of these and .gz, .bz2 or .xz), and no format is given");
  }
  if (options.compression == Compression::zip) unfit(path, "zip is only read; gzip, bzip2 and xz are written");
  Table table = given;
  if (table.view.rows() < 1 || table.view.cols() < 1) unfit(path, "the table has no rows or no columns");
  if (!keeps_shape(*format) || table.shape.empty()) table.shape = {table.view.rows(), table.view.cols()};
  if (!takes_labels(path, *format, table, options.drop_labels)) table.labels.reset();
  require_place_for_ids(path, *format, table);
  const bool has_text =
      std::any_of(table.categories.begin(), table.categories.end(), [](const auto& texts) { return !texts.empty(); });
  if (has_text && *format != FileFormat::csv && *format != FileFormat::json_lines && !options.lossy) {
    unfit(path, fmt::format("{} has no place for columns of text (lossy writes their codes)", name_of(*format)));
  }
  if (*format == FileFormat::kmeans_text && table.view.rows() < 2) unfit(path, "kmeans-text has at least two rows");
  const char by_suffix = path.string().find(".tsv") != std::string::npos ? '\t' : ',';
  const io::TableOutput output = {ctx,
                                  path,
                                  table,
                                  *format,
                                  choose_type(path, *format, table, options),
                                  options.lossy,
                                  options.delimiter != 0 ? options.delimiter : by_suffix};
  io::PackedFile file(ctx, path, options.compression.value_or(io::compression_of_suffix(path)));
  switch (*format) {
    case FileFormat::npy:
    case FileFormat::npz:
    case FileFormat::hdf5:
      write_arrays(output, file, table.labels.has_value());
      break;
    case FileFormat::csv:
    case FileFormat::json_lines:
    case FileFormat::libsvm:
    case FileFormat::kmeans_text:
      io::write_text_table(output, file);
      break;
    default:
      io::write_binary_table(output, file);
  }
  file.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

// A tensor file (tensor_file.hpp), whose tensors come in one fixed order, the 8-byte ones first and the table at a
// multiple of 64, so that all of them can be used in place.
#include "ops/nearest/index_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "ops/nearest/index_check.hpp"
#include "ops/nearest/search.hpp"

namespace vicinal::ops {
namespace {

using nlohmann::json;

constexpr std::int64_t kBlockBytes = 4 << 20;  // of the table written, or summed, at a time
constexpr std::int64_t kTableAlignment = 64;
constexpr std::int64_t kMostPacked = 12;  // three metrics, three screens and pruned rows
constexpr std::int64_t kPruned = 16;      // added to the screen of pruned rows

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr std::array<DTypeName, 5> kDTypeNames = {{{DType::uint8, "U8"},
                                                   {DType::float16, "F16"},
                                                   {DType::bfloat16, "BF16"},
                                                   {DType::float32, "F32"},
                                                   {DType::float64, "F64"}}};

/// What the layout depends on.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType dtype = DType::float32;
  std::int64_t groups = 0;     // 0: not grouped
  std::int64_t tree_rows = 0;  // of a tree; 0: none
  std::int64_t tree_leaves = 0;
  std::int64_t tree_nodes = 0;
  std::int64_t k_distances = 0;    // 0: none
  std::int64_t packed = 0;         // kinds of packed rows; 0: none
  std::vector<ModelArray> arrays;  // of a model; without data
};

std::string dtype_name(DType dtype) {
  const auto* const found =
      std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [dtype](const DTypeName& x) { return x.dtype == dtype; });
  return found->name;
}

/// The tensors in file order; nothing when their bytes are more than 2^63.
std::optional<std::vector<Tensor>> layout_of(const Shape& shape) {
  TensorLayout layout;
  const auto add = [&](const char* name, const std::string& dtype, std::int64_t size, std::vector<std::int64_t> dims) {
    layout.add(name, dtype, size, std::move(dims));
  };
  add("centre", "F64", 8, {shape.cols});
  add("largest", "F64", 8, {1});
  if (shape.groups > 0) {
    add("distinct", "I64", 8, {shape.groups});
    add("member_offsets", "I64", 8, {shape.groups + 1});
    add("members", "I64", 8, {shape.rows});
  }
  if (shape.tree_rows > 0) {
    add("tree_order", "I64", 8, {shape.tree_rows});
    add("tree_leaf_sizes", "I64", 8, {shape.tree_leaves});
    add("tree_nodes", "I64", 8, {shape.tree_nodes});
  }
  if (shape.k_distances > 0) {
    add("k_distance_of", "I64", 8, {2});  // metric and k
    add("k_distance_p", "F64", 8, {1});
    add("k_distances", "F64", 8, {shape.k_distances});
  }
  if (shape.packed > 0) add("packed_for", "I64", 8, {shape.packed, 2});  // metric and screen
  for (const ModelArray& array : shape.arrays) add(array.name.c_str(), array.dtype, 8, array.shape);
  add("table", dtype_name(shape.dtype), size_of(shape.dtype), {shape.rows, shape.cols});
  return layout.finish();
}

void write_table(const Context& ctx, const TableView& table, SummedFile& file) {
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  const std::int64_t block = std::clamp<std::int64_t>(kBlockBytes / row_bytes, 1, table.rows());
  std::vector<std::byte> buffer(static_cast<std::size_t>(block * row_bytes));
  for (std::int64_t begin = 0; begin < table.rows(); begin += block) {
    ctx.check_cancelled();
    ctx.report("save", static_cast<double>(begin) / static_cast<double>(table.rows()));
    const std::int64_t end = std::min(table.rows(), begin + block);
    core::copy_rows(table, begin, end, buffer.data());
    file.write(buffer.data(), static_cast<std::size_t>((end - begin) * row_bytes));
  }
  ctx.report("save", 1);
}

/// The file that is read, for sentences.
struct Place {
  const FileKind& kind;
  const std::filesystem::path& path;
};

[[noreturn]] void refuse_part(const Place& place, const std::string& why) {
  refuse_file(place.kind, place.path, why);
}

/// The shape of a tensor of the header: `dims` numbers in [1, 2^63), or nothing.
std::optional<std::vector<std::int64_t>> shape_in(const json& header, const char* name, std::size_t dims) {
  const auto tensor = header.find(name);
  if (tensor == header.end() || !tensor->is_object()) return std::nullopt;
  const auto shape = tensor->find("shape");
  if (shape == tensor->end() || !shape->is_array() || shape->size() != dims) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const json& dim : *shape) {
    if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() >> 63 != 0 || dim.get<std::uint64_t>() == 0) {
      return std::nullopt;
    }
    result.push_back(dim.get<std::int64_t>());
  }
  return result;
}

/// The arrays of a model, by name: what is in the header and not one of an index.
std::vector<ModelArray> arrays_in(const json& header) {
  constexpr std::array<std::string_view, 15> kIndexNames = {
      "__metadata__", "centre",          "largest",    "distinct",      "member_offsets",
      "members",      "tree_order",      "tree_nodes", "k_distance_of", "k_distance_p",
      "k_distances",  "tree_leaf_sizes", "packed_for", "table",         "crc32"};
  std::vector<ModelArray> arrays;
  for (const auto& [name, tensor] : header.items()) {
    if (std::find(kIndexNames.begin(), kIndexNames.end(), name) != kIndexNames.end()) continue;
    auto shape = shape_in(header, name.c_str(), 1);
    if (!shape) shape = shape_in(header, name.c_str(), 2);
    if (!shape) continue;  // then the layout does not fit, either
    const bool whole = tensor.value("dtype", json()) == "I64";
    arrays.push_back({name, whole ? "I64" : "F64", *shape, nullptr});
  }
  return arrays;
}

Shape read_shape(const Place& place, const json& header) {
  const auto table = shape_in(header, "table", 2);
  if (!table) refuse_part(place, "its header has no table of rows and columns");
  Shape shape;
  shape.rows = (*table)[0];
  shape.cols = (*table)[1];
  const json& dtype = header["table"].value("dtype", json());
  const auto* const found =
      std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const DTypeName& x) { return dtype == x.name; });
  if (found == kDTypeNames.end()) refuse_part(place, "its table has an unknown element type");
  shape.dtype = found->dtype;
  if (header.contains("distinct")) {
    const auto distinct = shape_in(header, "distinct", 1);
    if (!distinct || (*distinct)[0] > shape.rows) refuse_part(place, "its groups of equal rows are not a list");
    shape.groups = (*distinct)[0];
  }
  if (header.contains("tree_order")) {
    const auto order = shape_in(header, "tree_order", 1);
    const auto leaf_sizes = shape_in(header, "tree_leaf_sizes", 1);
    const auto nodes = shape_in(header, "tree_nodes", 1);
    if (!order || !leaf_sizes || !nodes) refuse_part(place, "its tree is not three lists");
    shape.tree_rows = (*order)[0];
    shape.tree_leaves = (*leaf_sizes)[0];
    shape.tree_nodes = (*nodes)[0];
  }
  if (header.contains("k_distances")) {
    const auto distances = shape_in(header, "k_distances", 1);
    if (!distances || (*distances)[0] > shape.rows) refuse_part(place, "its k-distances are not a list");
    shape.k_distances = (*distances)[0];
  }
  if (header.contains("packed_for")) {
    const auto packed = shape_in(header, "packed_for", 2);
    if (!packed || (*packed)[0] > kMostPacked || (*packed)[1] != 2)
      refuse_part(place, "its packed rows are not a list");
    shape.packed = (*packed)[0];
  }
  if (place.kind.has_arrays) shape.arrays = arrays_in(header);
  return shape;
}

/// CRC-32 of bytes, in parallel over blocks.
std::uint32_t sum_of(const Context& ctx, const unsigned char* data, std::int64_t bytes) {
  const std::int64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  std::vector<uLong> sums(static_cast<std::size_t>(blocks));
  const auto size_of_block = [&](std::int64_t block) { return std::min(kBlockBytes, bytes - block * kBlockBytes); };
  core::parallel_for(ctx, blocks, [&](std::int64_t block, int) {
    sums[static_cast<std::size_t>(block)] =
        crc32_z(0, data + block * kBlockBytes, static_cast<std::size_t>(size_of_block(block)));
  });
  uLong sum = crc32_z(0, nullptr, 0);
  for (std::int64_t block = 0; block < blocks; ++block) {
    sum = crc32_combine(sum, sums[static_cast<std::size_t>(block)], static_cast<z_off_t>(size_of_block(block)));
  }
  return static_cast<std::uint32_t>(sum);
}

template <class T>
std::vector<T> read_values(const unsigned char* at, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::memcpy(values.data(), at, values.size() * sizeof(T));
  return values;
}

/// A tree is a permutation of the rows and how they hang together; its boxes are made from the table, so that no file
/// can make it answer wrongly.
void restore_tree(const Context& ctx, const Place& place, const kernels::Prepared& index, kernels::TreeShape shape) {
  core::require_memory(ctx, kernels::cpu_backend().nearest().tree_bytes(index),
                       "loading the tree of '" + place.path.string() + "'");
  try {
    index.tree.get_or_make(ctx, [&] { return kernels::restore_tree(ctx, index, std::move(shape)); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    refuse_part(place, error.what());
  }
}

/// Sound whatever they are; refused only where they are not what is written.
void restore_k_distances(const Place& place, const kernels::Prepared& index, const std::vector<std::int64_t>& of,
                         double p, const std::vector<double>& keys) {
  const bool known = of[0] >= 0 && of[0] <= static_cast<std::int64_t>(Metric::hamming) && of[1] >= 1 &&
                     of[1] <= index.table.rows() && p >= 1 && std::isfinite(p);
  const bool ascending = std::is_sorted(keys.begin(), keys.end()) &&
                         std::all_of(keys.begin(), keys.end(), [](double key) { return std::isfinite(key); });
  if (!known || !ascending) refuse_part(place, "its k-distances do not ascend or belong to nothing");
  index.k_distances.get_or_make(static_cast<Metric>(of[0]), p, of[1], [&] { return keys; });
}

/// The kinds of packed rows, as a file names them: in their own order, not that in which they were packed.
std::vector<std::int64_t> packed_in(const kernels::Prepared& index) {
  std::set<std::pair<std::int64_t, std::int64_t>> kinds;
  for (const auto& table : index.packed.all()) {
    if (!table->is_complete()) continue;
    kinds.emplace(static_cast<std::int64_t>(table->kind().metric),
                  static_cast<std::int64_t>(table->kind().screen) + (table->kind().pruned ? kPruned : 0));
  }
  std::vector<std::int64_t> numbers;
  for (const auto& [metric, screen] : kinds) numbers.insert(numbers.end(), {metric, screen});
  return numbers;
}

std::vector<kernels::PackedKind> packed_kinds(const Place& place, const std::vector<std::int64_t>& numbers) {
  std::vector<kernels::PackedKind> kinds;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const auto metric = static_cast<Metric>(numbers[i]);
    const auto int8 = static_cast<std::int64_t>(ScreenType::int8);
    const bool pruned = numbers[i + 1] == int8 + kPruned;
    const auto screen = pruned ? ScreenType::int8 : static_cast<ScreenType>(numbers[i + 1]);
    const bool known =
        (numbers[i] == static_cast<std::int64_t>(Metric::euclidean) ||
         numbers[i] == static_cast<std::int64_t>(Metric::cosine) ||
         numbers[i] == static_cast<std::int64_t>(Metric::inner_product)) &&
        (pruned || (numbers[i + 1] >= static_cast<std::int64_t>(ScreenType::float32) && numbers[i + 1] <= int8));
    const kernels::PackedKind kind = {metric, screen, 0, pruned};
    if (!known || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
      refuse_part(place, "its packed rows are of no known kind, or of one kind twice");
    }
    kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace

void write_index(const Context& ctx, const std::filesystem::path& path, const kernels::Prepared& index,
                 const FileKind& kind, const ModelParts& parts) {
  Shape shape;
  shape.rows = index.table.rows();
  shape.cols = index.table.cols();
  shape.dtype = index.table.dtype();
  shape.groups = static_cast<std::int64_t>(index.distinct.size());
  const std::shared_ptr<const kernels::Tree> tree = index.tree.any();
  std::shared_ptr<const kernels::TreeShape> tree_shape;
  if (tree) {
    tree_shape = tree->shape_of(ctx, index);
    shape.tree_rows = static_cast<std::int64_t>(tree_shape->order.size());
    shape.tree_leaves = static_cast<std::int64_t>(tree_shape->leaf_sizes.size());
    shape.tree_nodes = static_cast<std::int64_t>(tree_shape->nodes.size());
  }
  const std::shared_ptr<const kernels::KDistances> k_distances = index.k_distances.get();
  if (k_distances) shape.k_distances = static_cast<std::int64_t>(k_distances->keys.size());
  const std::vector<std::int64_t> packed = packed_in(index);
  shape.packed = std::ssize(packed) / 2;
  shape.arrays = parts.arrays;
  const auto tensors = layout_of(shape);
  if (!tensors) throw Error(ErrorCode::invalid_argument, "index: it has more than 2^63 bytes, too many for a file");

  std::string header = header_text(kind, header_of(kind, *tensors, parts.metadata));
  const std::int64_t table_begin = (*tensors)[tensors->size() - 2].begin;
  while ((8 + static_cast<std::int64_t>(header.size()) + table_begin) % kTableAlignment != 0) header += ' ';
  SummedFile file(path);
  const std::uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  file.write(index.centre);
  file.write(&index.largest, sizeof index.largest);
  file.write(index.distinct);
  file.write(index.member_offsets);
  file.write(index.members);
  if (tree) {
    file.write(tree_shape->order);
    file.write(tree_shape->leaf_sizes);
    file.write(tree_shape->nodes);
  }
  if (shape.k_distances > 0) {
    file.write(std::vector<std::int64_t>{static_cast<std::int64_t>(k_distances->metric), k_distances->k});
    file.write(&k_distances->p, sizeof k_distances->p);
    file.write(k_distances->keys);
  }
  file.write(packed);
  for (const ModelArray& array : parts.arrays) {
    std::int64_t bytes = 8;
    for (const std::int64_t dim : array.shape) bytes *= dim;
    file.write(array.data, static_cast<std::size_t>(bytes));
  }
  write_table(ctx, index.table, file);
  file.commit();
}

kernels::Prepared read_index(const Context& ctx, const std::filesystem::path& path, const FileKind& kind,
                             ModelParts* parts) {
  return read_index(ctx, io::open_file(ctx, path), path, kind, parts);
}

kernels::Prepared read_index(const Context& ctx, const io::Bytes& bytes, const std::filesystem::path& path,
                             const FileKind& kind, ModelParts* parts) {
  const Place place{kind, path};
  std::int64_t data_begin = 0;
  const json header = read_header(kind, path, bytes, data_begin);
  const Shape shape = read_shape(place, header);
  const auto tensors = layout_of(shape);
  const auto metadata = kind.has_arrays ? texts_in(kind, path, header) : std::map<std::string, std::string>();
  if (!tensors || header != header_of(kind, *tensors, metadata))
    refuse_part(place, "its header describes another layout");
  if (static_cast<std::uint64_t>(tensors->back().end) != bytes.size - static_cast<std::uint64_t>(data_begin)) {
    refuse_part(place, "its header describes " + std::to_string(tensors->back().end) + " bytes, but " +
                           std::to_string(bytes.size - static_cast<std::uint64_t>(data_begin)) + " follow");
  }
  if ((data_begin + (*tensors)[tensors->size() - 2].begin) % kTableAlignment != 0) {
    refuse_part(place, "its table is not aligned to " + std::to_string(kTableAlignment) + " bytes");
  }
  std::uint64_t numbers = static_cast<std::uint64_t>(shape.cols) + 1;
  if (shape.groups > 0) numbers += static_cast<std::uint64_t>(2 * shape.groups + 1 + shape.rows + shape.rows / 64);
  // A tree has as many leaves as rows at most; more nodes than two a leaf are refused before they are read.
  if (shape.tree_leaves > shape.tree_rows || shape.tree_nodes / 64 > shape.tree_leaves) {
    refuse_part(place, "its tree has more nodes than its rows can fill");
  }
  numbers += static_cast<std::uint64_t>(shape.tree_rows + shape.tree_leaves + shape.tree_nodes + shape.k_distances);
  core::require_memory(ctx, numbers * 8 + bytes.held,
                       std::string("loading the ") + kind.noun + " '" + path.string() + "'");

  const unsigned char* data = bytes.data + data_begin;
  std::uint32_t sum = 0;
  std::memcpy(&sum, data + tensors->back().begin, sizeof sum);
  if (sum_of(ctx, bytes.data, static_cast<std::int64_t>(bytes.size - sizeof sum)) != sum) {
    refuse_part(place, "it is damaged: its check sum is wrong");
  }

  kernels::Prepared index;
  const auto at = [&](std::size_t tensor) { return data + (*tensors)[tensor].begin; };
  index.centre = read_values<double>(at(0), shape.cols);
  index.largest = read_values<double>(at(1), 1).front();
  index.table = TableView(at(tensors->size() - 2), shape.dtype, shape.rows, shape.cols, shape.cols);
  index.storage = bytes.owner;
  const bool finite = std::all_of(index.centre.begin(), index.centre.end(), [](double x) { return std::isfinite(x); });
  if (!finite || !std::isfinite(index.largest) || index.largest < 0) refuse_part(place, "its center is not finite");
  if (shape.groups > 0) {
    index.distinct = read_values<std::int64_t>(at(2), shape.groups);
    index.member_offsets = read_values<std::int64_t>(at(3), shape.groups + 1);
    index.members = read_values<std::int64_t>(at(4), shape.rows);
    check_groups(kind, path, index);
  }
  const std::size_t tree = shape.groups > 0 ? 5 : 2;
  if (shape.tree_rows > 0) {
    kernels::TreeShape found;
    found.order = read_values<std::int64_t>(at(tree), shape.tree_rows);
    found.leaf_sizes = read_values<std::int64_t>(at(tree + 1), shape.tree_leaves);
    found.nodes = read_values<std::int64_t>(at(tree + 2), shape.tree_nodes);
    restore_tree(ctx, place, index, std::move(found));
  }
  if (shape.k_distances > 0) {
    const std::size_t first = shape.tree_rows > 0 ? tree + 3 : tree;
    restore_k_distances(place, index, read_values<std::int64_t>(at(first), 2),
                        read_values<double>(at(first + 1), 1).front(),
                        read_values<double>(at(first + 2), shape.k_distances));
  }
  index.packed.allow();
  if (shape.packed > 0) {
    const std::size_t at_packed = tensors->size() - 3 - shape.arrays.size();
    auto kinds = packed_kinds(place, read_values<std::int64_t>(at(at_packed), 2 * shape.packed));
    if (std::any_of(kinds.begin(), kinds.end(), [](const auto& packed_kind) { return packed_kind.pruned; })) {
      index.packed.allow_pruned();
    }
    index.packed.remember(std::move(kinds));
  }
  if (parts != nullptr) {
    parts->metadata = metadata;
    parts->arrays = shape.arrays;
    const std::size_t first = tensors->size() - 2 - shape.arrays.size();
    for (std::size_t i = 0; i < shape.arrays.size(); ++i) parts->arrays[i].data = at(first + i);
  }
  return index;
}

std::shared_ptr<const kernels::Prepared> load_index(const Context& ctx, const std::filesystem::path& path,
                                                    const FileKind& kind, ModelParts* parts) {
  const io::Bytes bytes = io::open_file(ctx, path);
  auto prepared = std::make_shared<kernels::Prepared>(read_index(ctx, bytes, path, kind, parts));
  check_rows(ctx, kind, path, *prepared);
  // Packed rows are made from the table, so that no file can make them answer wrongly.
  pack_now(ctx, *prepared, prepared->packed.remembered(), bytes.held);
  return prepared;
}

}  // namespace vicinal::ops

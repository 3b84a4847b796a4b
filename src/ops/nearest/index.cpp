// Index: the door (contract clause 6), an optional copy, the backend's preparation; saved and loaded by ops/index_file.
#include <algorithm>
#include <optional>
#include <utility>

#include "backend/backend.hpp"
#include "backend/nearest.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/table_access.hpp"
#include "ops/common/check.hpp"
#include "ops/common/preparation_text.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/index_file.hpp"
#include "ops/nearest/search.hpp"
#include "vicinal/knn.hpp"

namespace vicinal {
namespace {

/// A contiguous copy in the table's own type; `storage` owns it.
TableView copy_table(const Context& ctx, const TableView& table, std::shared_ptr<const void>& storage) {
  constexpr std::int64_t kBlockBytes = 4 << 20;
  const std::int64_t row_bytes = table.cols() * size_of(table.dtype());
  const auto bytes = static_cast<std::size_t>(table.rows() * row_bytes);
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
  const std::int64_t block = std::max<std::int64_t>(1, kBlockBytes / row_bytes);
  const std::int64_t blocks = (table.rows() + block - 1) / block;
  const auto copy_block = [&](std::int64_t i, int) {
    core::copy_rows(table, i * block, std::min(table.rows(), (i + 1) * block), copy.get() + i * block * row_bytes);
  };
  if (table.is_block_source()) {  // called by one thread at a time
    for (std::int64_t i = 0; i < blocks; ++i) {
      ctx.check_cancelled();
      copy_block(i, 0);
    }
  } else {
    core::parallel_for(ctx, blocks, copy_block);
  }
  storage = copy;
  return TableView(copy.get(), table.dtype(), table.rows(), table.cols(), table.cols());
}

void make_tree(const Context& ctx, const kernels::Prepared& prepared) {
  if (prepared.table.is_block_source()) {
    throw Error(ErrorCode::invalid_argument,
                "tree: needs the table in memory, but it comes in blocks; set IndexOptions::copy, too");
  }
  const kernels::Backend& backend = kernels::backend_of(ctx);
  core::require_memory(ctx, backend.nearest().tree_bytes(prepared), "building the tree");
  prepared.tree.get_or_make(
      ctx, [&] { return backend.nearest().build_tree(ctx, prepared); }, backend.device());
}

}  // namespace

void ops::pack_now(const Context& ctx, const kernels::Prepared& prepared, std::span<const kernels::PackedKind> kinds,
                   std::uint64_t held) {
  const kernels::NearestBackend& backend = kernels::backend_of(ctx).nearest();
  held += group_bytes(prepared);
  if (prepared.tree.any()) held += backend.tree_bytes(prepared);
  for (const kernels::PackedKind& kind : kinds) {
    kernels::NearestTask task;
    task.index = &prepared;
    task.queries = prepared.table.slice(0, 1);
    task.metric = kind.metric;
    task.k = 1;
    task.kept_screens = 1;
    if (!backend.can_fuse(task)) continue;
    if (kind.pruned) {
      const std::uint64_t kept = prepared.packed.bytes() + prepared.packed.noted_bytes();
      if (held + kept + backend.pruning_bytes(task) > ctx.memory_limit()) continue;
      task.pruned = backend.prunes(ctx, task);
      if (!task.pruned) continue;
    }
    std::optional<kernels::PackedNeed> found;
    for (const kernels::PackedNeed& need : backend.packed_needs(ctx, task)) {
      if (need.kind.pruned != kind.pruned) continue;
      if (need.kind.screen != kind.screen && kind.screen != ScreenType::automatic) continue;
      found = need;
      break;
    }
    if (!found) continue;  // searches on this machine do not use that screen
    if (!kind.pruned) task.screen = found->kind.screen;
    const std::uint64_t more = prepared.packed.get(found->kind) == nullptr ? found->bytes : 0;
    if (held + prepared.packed.bytes() + prepared.packed.noted_bytes() + more + backend.host_bytes(ctx, task) >
        ctx.memory_limit())
      continue;
    backend.pack(ctx, task);
  }
}

std::shared_ptr<const kernels::Prepared> ops::prepare(const Context& ctx, const TableView& table,
                                                      const IndexOptions& options, std::int64_t first_id) {
  check_table(ctx, table, "table");
  const std::int64_t copied = options.copy ? table.rows() * table.cols() * size_of(table.dtype()) : 0;
  core::require_memory(
      ctx, kernels::backend_of(ctx).nearest().prepare_bytes(ctx, table) + static_cast<std::uint64_t>(copied),
      "preparing the table");
  auto prepared = std::make_shared<kernels::Prepared>();
  prepared->first_id = first_id;
  prepared->table = options.copy ? copy_table(ctx, table, prepared->storage) : table;
  kernels::backend_of(ctx).nearest().prepare(ctx, *prepared);
  if (options.tree) make_tree(ctx, *prepared);
  if (options.packed != Packing::never) prepared->packed.allow();
  if (options.pruned != Packing::never) prepared->packed.allow_pruned();
  std::vector<kernels::PackedKind> kinds;
  if (options.pruned == Packing::now) kinds.push_back({Metric::euclidean, ScreenType::int8, 0, true});
  if (options.packed == Packing::now) kinds.push_back({Metric::euclidean, ScreenType::automatic, 0});
  pack_now(ctx, *prepared, kinds, static_cast<std::uint64_t>(copied));
  return prepared;
}

Index::Index(const Context& ctx, const TableView& table, const IndexOptions& options) try {
  const core::Entry entry;
  if (options.packed > Packing::now) refuse("packed: is not one of automatic, never, now");
  if (options.pruned > Packing::now) refuse("pruned: is not one of automatic, never, now");
  prepared_ = ops::prepare(ctx, table, options);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::int64_t Index::rows() const noexcept {
  return prepared_->table.rows();
}
std::int64_t Index::cols() const noexcept {
  return prepared_->table.cols();
}
const TableView& Index::table() const noexcept {
  return prepared_->table;
}

void Index::save(const Context& ctx, const std::filesystem::path& path) const try {
  const core::Entry entry;
  ops::write_index(ctx, path, *prepared_);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

Index Index::load(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  // The files of these models are those of an index with more in it.
  for (const ops::FileKind& kind : {ops::kNeighborFile, ops::kEmbeddingFile}) {
    if (!ops::is_of_kind(ctx, path, kind)) continue;
    ops::ModelParts parts;
    Index index(ops::load_index(ctx, path, kind, &parts));
    std::string notes = parts.metadata["notes"];
    ops::ModelReader file(kind, path, parts);
    const Preparation made = ops::read_preparation(file, index.cols(), notes);
    if (!made.changes_rows()) return index;
    refuse("model file '" + path.string() + "': its rows were prepared (" + ops::summary_of(made) +
           "), and an index would search unprepared queries among them; load it as a NeighborModel or LleModel");
  }
  return Index(ops::load_index(ctx, path, ops::kIndexFile));
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

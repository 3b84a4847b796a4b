// See row_parts.hpp.
#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda/base/row_parts.hpp"

namespace vicinal::cuda {
namespace {

/// Whether rows need no copy where they lie.
bool may_lie_ready(const plugin::Table& table) {
  return static_cast<Memory>(table.memory) == Memory::cuda && table.col_stride == 1 && table.row_stride == table.cols;
}

}  // namespace

RowParts::RowParts(Session& session, const plugin::Table& table, std::int64_t part)
    : session_(session),
      n_(table.rows),
      part_(part),
      rows_{table.data, static_cast<DType>(table.dtype), table.rows, table.cols} {
  const Engine& engine = session.engine;
  const bool ready = lies_ready(engine, table, "table");
  if (stay() && ready) return;
  for (int i = 0; i < (stay() ? 1 : 2); ++i) parts_[i] = Buffer<std::byte>(engine, part * row_bytes(table));
  if (!stay()) return;
  upload_rows(session, table, 0, n_, parts_[0].data(), engine.stream);
  rows_.data = parts_[0].data();
}

RowParts::~RowParts() {
  if (!stay()) static_cast<void>(cudaStreamSynchronize(session_.copies));  // before the parts are given back
}

void RowParts::fill(const plugin::Table& table, std::int64_t first, int turn) {
  upload_rows(session_, table, first, std::min(n_, first + part_), parts_[turn].data(), session_.copies);
}

RowParts::Chosen RowParts::choose(const plugin::Table& table, const std::int64_t* numbers, std::int64_t count) {
  const Engine& engine = session_.engine;
  Chosen chosen{rows_, {}, Buffer<std::int64_t>(engine, count)};
  if (stay()) {
    to_device(engine, chosen.numbers.data(), numbers, count);
    return chosen;
  }
  const std::int64_t bytes = row_bytes(table);
  chosen.copy = Buffer<std::byte>(engine, count * bytes);
  chosen.rows.data = chosen.copy.data();
  chosen.rows.n = count;
  const std::int64_t step = std::clamp<std::int64_t>(plugin::kStagingBytes / bytes, 1, count);
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(begin + step, count);
    std::byte* const staged = session_.staging.next(static_cast<std::size_t>(step * bytes));
    for (std::int64_t i = begin; i < end; ++i) {
      if (table.fill(table.source, numbers[i], numbers[i] + 1, staged + (i - begin) * bytes) != 0) throw HostFailure{};
    }
    to_device(engine, chosen.copy.data() + begin * bytes, staged, (end - begin) * bytes);
    session_.staging.in_flight(engine.stream);
  }
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  to_device(engine, chosen.numbers.data(), places.data(), count);
  engine.synchronize();  // the places are on their way
  return chosen;
}

std::int64_t RowParts::bytes(const plugin::Table& table, std::int64_t part) {
  if (part < table.rows) return 2 * part * row_bytes(table);
  return may_lie_ready(table) ? 0 : part * row_bytes(table);
}

}  // namespace vicinal::cuda

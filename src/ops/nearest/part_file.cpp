// See part_file.hpp. A file is read in pieces: of lists, those of the queries that a merge needs next.
#include "ops/nearest/part_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "core/entry.hpp"
#include "core/in_steps.hpp"
#include "core/memory.hpp"
#include "ops/common/model_reader.hpp"
#include "ops/common/refuse.hpp"
#include "ops/nearest/part_fit.hpp"

namespace vicinal {
namespace ops {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
constexpr std::int64_t kCounters = 4;  // of SearchStats
constexpr std::int64_t kSeconds = 3;
constexpr std::size_t kHeaderRoom = 4096;  // about what all but the lists takes

/// What the layout of a file depends on.
struct PartShape {
  PartInfo info;
  bool has_offsets = false;
  std::int64_t entries = 0;  // of all lists
};

std::optional<std::vector<Tensor>> layout_of(const PartShape& shape) {
  TensorLayout layout;
  const std::int64_t m = shape.info.queries;
  layout.add("counters", "I64", 8, {kCounters});
  layout.add("seconds", "F64", 8, {kSeconds});
  if (shape.info.has_radii) layout.add("radii", "F64", 8, {m});
  if (shape.info.kind == PartKind::count) {
    layout.add("counts", "I64", 8, {m});
    return layout.finish();
  }
  if (shape.has_offsets) {
    std::int64_t size = 0;
    if (__builtin_add_overflow(m, 1, &size)) return std::nullopt;
    layout.add("offsets", "I64", 8, {size});
  }
  layout.add("ids", "I64", 8, {shape.entries});
  layout.add("keys", "F64", 8, {shape.entries});
  return layout.finish();
}

std::map<std::string, std::string> metadata_of(const PartShape& shape) {
  const PartInfo& info = shape.info;
  return {{"kind", std::string(name_of(info.kind))},
          {"metric", std::string(name_of(info.metric))},
          {"p", text_of(info.p)},
          {"k", text_of(info.k)},
          {"radius", text_of(info.radius)},
          {"has_radii", text_of(info.has_radii ? 1 : 0)},
          {"order", std::string(name_of(info.order))},
          {"cols", text_of(info.cols)},
          {"rows", text_of(info.rows)},
          {"first_id", text_of(info.place.first_id)},
          {"total_rows", text_of(info.place.total_rows)},
          {"queries", text_of(info.queries)},
          {"first_query", text_of(info.place.first_query)},
          {"total_queries", text_of(info.place.total_queries)},
          {"self", text_of(info.place.self ? 1 : 0)},
          {"has_offsets", text_of(shape.has_offsets ? 1 : 0)},
          {"entries", text_of(shape.entries)}};
}

PartShape shape_of(const ModelReader& file) {
  const auto flag = [&](const char* name) {
    const int value = file.number<int>(name);
    file.require(value == 0 || value == 1, std::string("its '") + name + "' is neither 0 nor 1");
    return value == 1;
  };
  PartShape shape;
  PartInfo& info = shape.info;
  info.kind = file.named("kind", part_kind_from);
  info.metric = file.named("metric", metric_from);
  info.p = file.number<double>("p");
  info.k = file.number<std::int64_t>("k");
  info.radius = file.number<double>("radius");
  info.has_radii = flag("has_radii");
  info.order = file.named("order", radius_order_from);
  info.cols = file.number<std::int64_t>("cols");
  info.rows = file.number<std::int64_t>("rows");
  info.place.first_id = file.number<std::int64_t>("first_id");
  info.place.total_rows = file.number<std::int64_t>("total_rows");
  info.queries = file.number<std::int64_t>("queries");
  info.place.first_query = file.number<std::int64_t>("first_query");
  info.place.total_queries = file.number<std::int64_t>("total_queries");
  info.place.self = flag("self");
  shape.has_offsets = flag("has_offsets");
  shape.entries = file.number<std::int64_t>("entries");
  file.require(info.queries > 0 && info.rows > 0 && shape.entries >= 0, "it has no rows or no queries");
  return shape;
}

/// The bytes of a file, in memory, with their sum.
class SummedBytes {
 public:
  void write(const void* data, std::size_t bytes) {
    const auto* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
    sum_ = crc32_z(sum_, reinterpret_cast<const unsigned char*>(from), bytes);
  }
  template <class T>
  void write(const std::vector<T>& values) {
    write(values.data(), values.size() * sizeof(T));
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::vector<std::byte> commit() {
    const auto sum = static_cast<std::uint32_t>(sum_);
    write(&sum, sizeof sum);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
  uLong sum_ = crc32_z(0, nullptr, 0);
};

/// The header of a part, and the numbers that come first.
template <class File>
void begin_file(const PartShape& shape, const SearchStats& stats, File& file) {
  const auto tensors = layout_of(shape);
  if (!tensors) refuse("part: it has more than 2^63 bytes, too many for a file");
  std::string header = header_text(kPartFile, header_of(kPartFile, *tensors, metadata_of(shape)));
  while ((8 + header.size()) % 8 != 0) header += ' ';
  const std::uint64_t length = header.size();
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  file.write(std::vector<std::int64_t>{stats.distinct_rows, stats.survivors, stats.escalated, stats.uncertified});
  file.write(std::vector<double>{stats.prepare_seconds, stats.search_seconds, stats.selection_seconds});
}

template <class T, class File>
void write_in_pieces(const Context& ctx, const std::vector<T>& values, File& file) {
  constexpr std::size_t kPiece = kPieceBytes / sizeof(T);
  for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
    ctx.check_cancelled();
    file.write(values.data() + begin, std::min(kPiece, values.size() - begin) * sizeof(T));
  }
}

/// The whole part, whose arrays fit together.
template <class File>
void write_whole(const Context& ctx, const NeighborPart& part, File& file) {
  begin_file({part.info, !part.offsets.empty(), std::ssize(part.ids)}, part.stats, file);
  write_in_pieces(ctx, part.radii, file);
  write_in_pieces(ctx, part.counts, file);
  write_in_pieces(ctx, part.offsets, file);
  write_in_pieces(ctx, part.ids, file);
  write_in_pieces(ctx, part.keys, file);
}

/// Throws `invalid_argument` for arrays that do not fit together.
void require_whole(const Context& ctx, const NeighborPart& part) {
  check_info(part.info, "the part");
  try {
    check_part(ctx, part, "the part");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_data) throw;
    refuse(error.what());
  }
}

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const noexcept { return number_; }  ///< below 0: the file was not opened

 private:
  int number_;
};

/// What is read at any place: a file, or its bytes in memory.
class PlacedFile {
 public:
  /// Borrows the bytes; `name` stands for the path in sentences.
  PlacedFile(std::span<const std::byte> bytes, const std::string& name)
      : path_(name), size_(bytes.size()), bytes_(bytes.data()) {}
  explicit PlacedFile(const std::filesystem::path& path) : path_(path) {
    const Descriptor& file = opened_.emplace(path);
    if (file.number() < 0) fail("open", errno);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) fail("read", errno);
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::io, fmt::format("cannot read '{}': a part must be a regular file", path.string()));
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Calls between(), which may throw, before each piece.
  template <class Between>
  void read(std::uint64_t at, std::uint64_t bytes, void* to, const Between& between) const {
    auto* into = static_cast<unsigned char*>(to);
    while (bytes > 0) {
      between();
      if (bytes_ != nullptr) {
        const std::uint64_t piece = std::min<std::uint64_t>(bytes, kPieceBytes);
        std::memcpy(into, bytes_ + at, piece);
        into += piece;
        at += piece;
        bytes -= piece;
        continue;
      }
      const ssize_t got =
          ::pread(opened_->number(), into, std::min<std::uint64_t>(bytes, kPieceBytes), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", errno);
      if (got == 0) {
        throw Error(ErrorCode::io, fmt::format("cannot read '{}': it shrank while it was read", path_.string()));
      }
      into += got;
      at += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::uint64_t>(got);
    }
  }

 private:
  [[noreturn]] void fail(const char* what, int error) const {
    throw Error(ErrorCode::io,
                fmt::format("cannot {} '{}': {}", what, path_.string(), std::generic_category().message(error)));
  }

  std::filesystem::path path_;
  std::optional<Descriptor> opened_;
  std::uint64_t size_ = 0;
  const std::byte* bytes_ = nullptr;
};

/// A part in a file: what its header says, checked against the sum of all bytes, and its lists as they are asked for.
class PartFile {
 public:
  /// `place`: the path of a file, or the bytes of one and their name.
  template <class... Place>
  explicit PartFile(const Context& ctx, const Place&... place) : ctx_(ctx), file_(place...) {
    const std::filesystem::path& path = file_.path();
    io::Bytes begin;
    begin.size = std::min<std::uint64_t>(file_.size(), 8 + static_cast<std::uint64_t>(kPartFile.longest_header));
    std::vector<unsigned char> bytes(static_cast<std::size_t>(begin.size));
    read_bytes(0, begin.size, bytes.data());
    begin.data = bytes.data();
    const nlohmann::json header = read_header(kPartFile, path, begin, data_begin_);
    ModelParts described;
    described.metadata = texts_in(kPartFile, path, header);
    shape_ = shape_of(ModelReader(kPartFile, path, described));
    auto tensors = layout_of(shape_);
    if (!tensors || header != header_of(kPartFile, *tensors, described.metadata)) {
      refuse_file(kPartFile, path, "its header describes another layout");
    }
    const std::uint64_t follow = file_.size() - static_cast<std::uint64_t>(data_begin_);
    if (static_cast<std::uint64_t>(tensors->back().end) != follow) {
      refuse_file(kPartFile, path,
                  fmt::format("its header describes {} bytes, but {} follow", tensors->back().end, follow));
    }
    tensors_ = std::move(*tensors);
    check_sum_ = checked_sum();
    const PartInfo& info = shape_.info;
    if (!ops::describes_part(info)) refuse_file(kPartFile, path, "its numbers describe no part of a search");
    if (info.kind == PartKind::radius && !shape_.has_offsets) {
      refuse_file(kPartFile, path, "its lists have no offsets");
    }
    const bool full = info.kind == PartKind::knn && !shape_.has_offsets;
    if (full && (shape_.entries % info.queries != 0 || shape_.entries / info.queries != info.k)) {
      refuse_file(kPartFile, path, "its lists do not have k neighbors each");
    }
  }

  [[nodiscard]] const PartInfo& info() const noexcept { return shape_.info; }
  [[nodiscard]] std::uint32_t check_sum() const noexcept { return check_sum_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.size(); }
  [[nodiscard]] SearchStats stats() const {
    std::int64_t counters[kCounters];
    double seconds[kSeconds];
    read_of("counters", 0, kCounters, counters);
    read_of("seconds", 0, kSeconds, seconds);
    if (!std::all_of(seconds, seconds + kSeconds, [](double x) { return x >= 0 && std::isfinite(x); })) {
      refuse_file(kPartFile, file_.path(), "its seconds are no times");
    }
    return {counters[0], counters[1], counters[2], counters[3], seconds[0], seconds[1], seconds[2]};
  }

  [[nodiscard]] std::int64_t neighbors(std::int64_t begin, std::int64_t end) const {
    const auto [first, last] = entries_of(begin, end);
    return last - first;
  }
  [[nodiscard]] NeighborPart read(std::int64_t begin, std::int64_t end) const {
    NeighborPart part;
    part.info = shape_.info;
    part.info.place.first_query += begin;
    part.info.queries = end - begin;
    if (shape_.info.has_radii) part.radii = values_of<double>("radii", begin, end);
    if (shape_.info.kind == PartKind::count) {
      part.counts = values_of<std::int64_t>("counts", begin, end);
      return part;
    }
    const auto [first, last] = entries_of(begin, end);
    if (shape_.has_offsets) {
      part.offsets = values_of<std::int64_t>("offsets", begin, end + 1);
      for (std::int64_t& offset : part.offsets) {
        if (offset < first || offset > last)
          refuse_file(kPartFile, file_.path(), "its offsets do not divide its lists");
        offset -= first;
      }
    }
    part.ids = values_of<std::int64_t>("ids", first, last);
    part.keys = values_of<double>("keys", first, last);
    return part;
  }

 private:
  void read_bytes(std::uint64_t at, std::uint64_t bytes, void* to) const {
    file_.read(at, bytes, to, [this] { ctx_.check_cancelled(); });
  }
  /// Elements of 8 bytes of a tensor.
  void read_of(const char* name, std::int64_t begin, std::int64_t count, void* to) const {
    const auto tensor =
        std::find_if(tensors_.begin(), tensors_.end(), [name](const Tensor& x) { return x.name == name; });
    read_bytes(static_cast<std::uint64_t>(data_begin_ + tensor->begin + begin * 8),
               static_cast<std::uint64_t>(count) * 8, to);
  }
  template <class T>
  [[nodiscard]] std::vector<T> values_of(const char* name, std::int64_t begin, std::int64_t end) const {
    std::vector<T> values;
    core::resize_in_steps(ctx_, values, end - begin);
    read_of(name, begin, end - begin, values.data());
    return values;
  }
  /// Where the lists of some queries begin and end.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> entries_of(std::int64_t begin, std::int64_t end) const {
    if (shape_.info.kind == PartKind::count) return {0, 0};
    if (!shape_.has_offsets) return {begin * shape_.info.k, end * shape_.info.k};
    std::int64_t first = 0;
    std::int64_t last = 0;
    read_of("offsets", begin, 1, &first);
    read_of("offsets", end, 1, &last);
    if (first < 0 || last < first || last > shape_.entries) {
      refuse_file(kPartFile, file_.path(), "its offsets do not divide its lists");
    }
    return {first, last};
  }

  [[nodiscard]] std::uint32_t checked_sum() const {
    const std::uint64_t summed = file_.size() - sizeof(std::uint32_t);
    std::vector<unsigned char> piece(static_cast<std::size_t>(std::min<std::uint64_t>(summed, kPieceBytes)));
    uLong sum = crc32_z(0, nullptr, 0);
    for (std::uint64_t at = 0; at < summed; at += piece.size()) {
      const std::uint64_t bytes = std::min<std::uint64_t>(piece.size(), summed - at);
      read_bytes(at, bytes, piece.data());
      sum = crc32_z(sum, piece.data(), bytes);
    }
    std::uint32_t stored = 0;
    read_bytes(summed, sizeof stored, &stored);
    if (sum != stored) refuse_file(kPartFile, file_.path(), "it is damaged: its check sum is wrong");
    return stored;
  }

  const Context ctx_;
  PlacedFile file_;
  std::int64_t data_begin_ = 0;
  PartShape shape_;
  std::vector<Tensor> tensors_;
  std::uint32_t check_sum_ = 0;
};

}  // namespace

PartWriter::PartWriter(const Context& ctx, const std::filesystem::path& path, const NeighborPart& part)
    : ctx_(ctx), part_(part), file_(path, &ctx.cancel_token()), ids_(ctx, path), keys_(ctx, path), offsets_(ctx, path) {
  offsets_.write(&entries_, sizeof entries_);
}

void PartWriter::add(const NeighborGraph& lists, std::int64_t first_id) {
  std::vector<std::int64_t> piece;
  constexpr std::size_t kPiece = 65536;
  const auto numbered = [&](const std::vector<std::int64_t>& values, std::size_t begin, std::int64_t added,
                            io::Spool& spool) {
    for (; begin < values.size(); begin += kPiece) {
      piece.assign(values.begin() + static_cast<std::ptrdiff_t>(begin),
                   values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), begin + kPiece)));
      for (std::int64_t& value : piece) value += added;
      spool.write(piece.data(), piece.size() * sizeof(std::int64_t));
    }
  };
  numbered(lists.ids, 0, first_id, ids_);
  numbered(lists.offsets, 1, entries_, offsets_);
  keys_.write(lists.distances.data(), lists.distances.size() * sizeof(double));
  entries_ += lists.offsets.back();
}

void PartWriter::commit(const SearchStats& stats) {
  begin_file({part_.info, true, entries_}, stats, file_);
  write_in_pieces(ctx_, part_.radii, file_);
  for (io::Spool* const spool : {&offsets_, &ids_, &keys_}) {
    spool->drain([&](std::string_view piece) { file_.write(piece.data(), piece.size()); });
  }
  file_.commit();
}

}  // namespace ops

std::uint32_t write_part(const Context& ctx, const std::filesystem::path& path, const NeighborPart& part) try {
  const core::Entry entry;
  ops::require_whole(ctx, part);
  ops::SummedFile file(path, &ctx.cancel_token());
  ops::write_whole(ctx, part, file);
  return file.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

std::vector<std::byte> part_bytes(const Context& ctx, const NeighborPart& part) try {
  const core::Entry entry;
  ops::require_whole(ctx, part);
  const std::size_t numbers =
      part.radii.size() + part.counts.size() + part.offsets.size() + part.ids.size() + part.keys.size();
  const std::size_t bytes = numbers * 8 + ops::kHeaderRoom;
  core::require_memory(ctx, bytes, "the bytes of a part");
  ops::SummedBytes file;
  file.reserve(bytes);
  ops::write_whole(ctx, part, file);
  return file.commit();
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

namespace {

PartSource source_of(std::shared_ptr<const ops::PartFile> file, const std::string& name) {
  PartSource source;
  source.info = file->info();
  source.name = name;
  const auto check = [m = source.info.queries](std::int64_t begin, std::int64_t end) {
    if (begin < 0 || end < begin || end > m) refuse(fmt::format("part: has no queries from {} to {}", begin, end));
  };
  source.read = [file, check](std::int64_t begin, std::int64_t end) {
    check(begin, end);
    return file->read(begin, end);
  };
  source.neighbors = [file, check](std::int64_t begin, std::int64_t end) {
    check(begin, end);
    return file->neighbors(begin, end);
  };
  source.stats = file->stats();
  source.check_sum = file->check_sum();
  return source;
}

}  // namespace

PartSource open_part(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  return source_of(std::make_shared<const ops::PartFile>(ctx, path), "'" + path.string() + "'");
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

PartSource open_part_bytes(const Context& ctx, std::span<const std::byte> bytes, const std::string& name) try {
  const core::Entry entry;
  return source_of(std::make_shared<const ops::PartFile>(ctx, bytes, name), "'" + name + "'");
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

NeighborPart read_part(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  const ops::PartFile file(ctx, path);
  core::require_memory(ctx, file.bytes(), "reading the part '" + path.string() + "'");
  NeighborPart part = file.read(0, file.info().queries);
  part.stats = file.stats();
  ops::check_part(ctx, part, "'" + path.string() + "'");
  return part;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

bool is_part_file(const Context& ctx, const std::filesystem::path& path) try {
  const core::Entry entry;
  return ops::is_of_kind(ctx, path, ops::kPartFile);
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

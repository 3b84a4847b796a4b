// describe_file: headers only, but for text, whose rows have to be counted. Of a packed file no more than that is
// unpacked.
#include <fmt/core.h>

#include <algorithm>

#include "io/content.hpp"
#include "io/csv.hpp"
#include "io/csv_chunks.hpp"
#include "io/idx.hpp"
#include "io/npy.hpp"
#include "io/npz.hpp"
#include "io/unpack.hpp"
#include "vicinal/io.hpp"

namespace vicinal {
namespace {

void add(FileInfo& info, const std::string& name, const io::ArrayHeader& header) {
  info.arrays.push_back({name, header.descr, header.shape});
}

void describe_text(const Context& ctx, const io::Bytes& bytes, const std::string& file, FileInfo& info) {
  const io::CsvLayout layout = io::lay_out_csv(bytes, file, {});
  info.columns = layout.names;
  info.arrays.push_back({"", "text", {io::count_csv_rows(ctx, layout), layout.fields()}});
}

}  // namespace

FileInfo describe_file(const Context& ctx, const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string where = fmt::format("'{}'", file);
  const io::Bytes stored = io::open_file(ctx, path);
  FileInfo info;
  info.bytes = stored.size;
  info.compression = io::compression_of(stored);
  const bool packed = info.compression != Compression::none;
  io::Bytes bytes = io::unpack(ctx, stored, file, io::kNpyHeaderLimit);
  info.format = io::recognize(bytes, file);
  const bool needs_all = info.format == FileFormat::npz || info.format == FileFormat::csv;
  if (packed && needs_all) bytes = io::unpack(ctx, stored, file);
  switch (info.format) {
    case FileFormat::npy:
      if (packed) {
        add(info, "", io::parse_npy_header(bytes, where));
      } else {
        add(info, "", io::parse_npy(bytes, where).header);
      }
      break;
    case FileFormat::idx:
      if (packed) {
        add(info, "", io::parse_idx_header(bytes, where));
      } else {
        add(info, "", io::parse_idx(bytes, where).header);
      }
      break;
    case FileFormat::npz:
      for (const io::NpzMember& array : io::list_npz(ctx, bytes, file)) add(info, array.name, array.header);
      break;
    case FileFormat::csv:
      describe_text(ctx, bytes, file, info);
      break;
  }
  return info;
}

}  // namespace vicinal

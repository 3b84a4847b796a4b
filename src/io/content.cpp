// See content.hpp. Names play no part: a renamed file is read as what it is.
#include "io/content.hpp"

#include <fmt/core.h>

#include "io/csv_layout.hpp"
#include "io/idx.hpp"
#include "io/npy.hpp"
#include "io/unpack.hpp"
#include "io/zip.hpp"

namespace vicinal::io {

FileFormat recognize(const Bytes& bytes, const std::string& file) {
  if (bytes.size == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' is empty", file));
  if (is_npy(bytes)) return FileFormat::npy;
  if (is_zip(bytes)) return FileFormat::npz;
  if (is_idx(bytes)) return FileFormat::idx;
  if (is_text(bytes)) return FileFormat::csv;
  if (const Compression inner = compression_of(bytes); inner != Compression::none) {
    throw Error(ErrorCode::bad_data,
                fmt::format("'{}' is packed twice ({} within); unpack it once", file, name_of(inner)));
  }
  throw Error(ErrorCode::bad_data,
              fmt::format("'{}' is not a format vicinal reads: npy, npz, idx, or CSV text, plain, gzip or xz", file));
}

Content open_content(const Context& ctx, const std::filesystem::path& path) {
  Content content;
  content.file = path.string();
  content.bytes = open_file(ctx, path);
  content.stored_bytes = content.bytes.size;
  content.compression = compression_of(content.bytes);
  content.bytes = unpack(ctx, content.bytes, content.file);
  content.format = recognize(content.bytes, content.file);
  return content;
}

}  // namespace vicinal::io

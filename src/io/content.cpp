// See content.hpp. Names play no part: a renamed file is read as what it is.
#include "io/content.hpp"

#include <fmt/core.h>

#include "io/csv_layout.hpp"
#include "io/idx.hpp"
#include "io/inflate.hpp"
#include "io/npy.hpp"
#include "io/zip.hpp"

namespace vicinal::io {

FileFormat recognize(const Bytes& bytes, const std::string& file) {
  if (bytes.size == 0) throw Error(ErrorCode::bad_data, fmt::format("'{}' is empty", file));
  if (is_npy(bytes)) return FileFormat::npy;
  if (is_zip(bytes)) return FileFormat::npz;
  if (is_idx(bytes)) return FileFormat::idx;
  if (is_text(bytes)) return FileFormat::csv;
  if (is_gzip(bytes)) {
    throw Error(ErrorCode::bad_data, fmt::format("'{}' is gzip within gzip; unpack it once", file));
  }
  throw Error(ErrorCode::bad_data,
              fmt::format("'{}' is not a format vicinal reads: npy, npz, idx, or CSV text, plain or gzip", file));
}

Content open_content(const Context& ctx, const std::filesystem::path& path) {
  Content content;
  content.file = path.string();
  content.bytes = open_file(ctx, path);
  content.stored_bytes = content.bytes.size;
  if (is_gzip(content.bytes)) {
    content.gzip = true;
    content.bytes = inflate_gzip(ctx, content.bytes, content.file);
  }
  content.format = recognize(content.bytes, content.file);
  return content;
}

}  // namespace vicinal::io

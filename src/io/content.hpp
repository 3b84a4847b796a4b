// Opening an input and finding out, by content, what it is.
#pragma once

#include <string>

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

struct Content {
  std::string file;  ///< for sentences
  Bytes bytes;       ///< unpacked
  FileFormat format = FileFormat::npy;
  Compression compression = Compression::none;
  std::uint64_t stored_bytes = 0;  ///< size of the file itself
};

/// Opens, unpacks and recognizes. `bad_data` for an empty file or a content that is no format of ours.
Content open_content(const Context& ctx, const std::filesystem::path& path);

/// The format of (unpacked) bytes, of which a prefix is enough.
FileFormat recognize(const Bytes& bytes, const std::string& file);

}  // namespace vicinal::io

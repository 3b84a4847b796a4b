// Opening an input and finding out, by content, what it is.
#pragma once

#include <string>

#include "io/bytes.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

struct Content {
  std::string file;  ///< for sentences
  Bytes bytes;       ///< inflated when the file is gzip
  FileFormat format = FileFormat::npy;
  bool gzip = false;
  std::uint64_t stored_bytes = 0;  ///< size of the file itself
};

/// Opens, inflates and recognizes. `bad_data` for an empty file or a content that is no format of ours.
Content open_content(const Context& ctx, const std::filesystem::path& path);

/// The format of (inflated) bytes, of which a prefix is enough.
FileFormat recognize(const Bytes& bytes, const std::string& file);

}  // namespace vicinal::io

// Opening an input and finding out what it is: by content, where a caller does not say.
#pragma once

#include <optional>
#include <string>

#include "io/bytes.hpp"
#include "io/member.hpp"
#include "vicinal/io.hpp"

namespace vicinal::io {

struct Content {
  std::string file;  ///< for sentences
  Bytes bytes;       ///< unpacked
  FileFormat format = FileFormat::npy;
  std::string member = {};  ///< of FILE:MEMBER, where the format holds arrays
  bool is_zipped = false;   ///< the bytes are a file within a zip archive
};

/// Opens, unpacks and recognizes; a `format` that is given is believed. `bad_data` for an empty file or a content that
/// is no format of ours, `invalid_argument` for one that may be several.
Content open_content(const Context& ctx, const std::filesystem::path& path, std::optional<FileFormat> format = {});

/// The same of bytes that are there already, as the file at `place` stores them.
Content recognized(const Context& ctx, const Bytes& stored, const Place& place, std::optional<FileFormat> format);

/// The format that the first bytes are the mark of: npy, npz, idx or hdf5; a prefix is enough. Others have none.
std::optional<FileFormat> marked_format(const Bytes& bytes) noexcept;

}  // namespace vicinal::io

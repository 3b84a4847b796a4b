// A small grayscale picture as a data URI, so that a page needs no second file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace vicinal::cli::report {

/// "data:image/png;base64,...". `gray` is [height, width], 0 black, 255 white.
std::string png_data_uri(std::span<const std::uint8_t> gray, std::int64_t width, std::int64_t height);

}  // namespace vicinal::cli::report

// Files that GDAL reads and writes through us, so that a cancelled job ends its parsing and writing: once it is
// cancelled they end where they are read and are full where they are written, and the driver stops there.
#pragma once

#include <cstdint>
#include <string>

namespace vicinal::gdal {

/// The name by which GDAL opens the file at `path` so.
std::string cancellable(const std::string& path);

/// While it lives, reads and writes of such files on this thread ask `cancelled(host)`.
class Watching {
 public:
  Watching(void* host, std::int32_t (*cancelled)(void* host));
  ~Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
};

/// Whether the job that this thread works for is cancelled.
bool is_cancelled();

}  // namespace vicinal::gdal

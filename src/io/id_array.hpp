// The ids of rows as an array: int64 where all are whole numbers, else texts of a fixed width, as NumPy has them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vicinal/io.hpp"

namespace vicinal::io {

class VICINAL_API IdArray {
 public:
  /// Of the rows with these numbers; of all where none are given. Scratch: 8 bytes a row, or 4 a character of the
  /// longest text. `file` stands for the ids in errors. Throws `bad_data` naming the row of a text that is not UTF-8,
  /// `over_memory` naming that of the longest one, `cancelled`.
  IdArray(const Context& ctx, const std::string& file, const RowIds& ids, std::span<const std::int64_t> rows = {});
  /// Throws as that would, and makes nothing: before there is work that would be in vain.
  static void check(const Context& ctx, const std::string& file, const RowIds& ids,
                    std::span<const std::int64_t> rows = {});

  /// [rows]; valid as long as this.
  [[nodiscard]] ArrayView view() const;

 private:
  std::int64_t size_ = 0;
  std::uint64_t width_ = 0;  ///< characters; 0: whole numbers
  std::vector<std::int64_t> numbers_;
  std::vector<std::uint32_t> characters_;  ///< [size_, width_]
};

}  // namespace vicinal::io

// What ranks find out about each other before they begin: that their options are the same, and whose rows come where.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vicinal/communicator.hpp"

namespace vicinal::ops {

/// An option, or whatever must be the same on every rank.
struct Agreed {
  std::string_view name;
  std::int64_t value;
};

/// Throws `invalid_argument` on all ranks naming the first value that is not that of rank 0. All ranks list the same
/// names.
void require_agreement(Communicator& ranks, std::span<const Agreed> values);

/// The numbers of all ranks, as many of each: [size * own.size()].
std::vector<std::int64_t> gathered(Communicator& ranks, std::span<const std::int64_t> own);
/// A number of each rank, [size].
std::vector<std::int64_t> gathered(Communicator& ranks, std::int64_t own);

/// [size + 1]: sums of the numbers before each rank, and of all.
std::vector<std::int64_t> begins_of(std::span<const std::int64_t> counts);

/// Where each rank's rows begin, and how many rows there are: [size + 1]. Throws `invalid_argument` on all ranks if a
/// rank says otherwise.
std::vector<std::int64_t> row_begins(Communicator& ranks, std::int64_t rows, std::int64_t first_row);

}  // namespace vicinal::ops

// See shard_rows.hpp.
#include "ops/common/shard_rows.hpp"

#include <array>
#include <string>

#include "ops/common/refuse.hpp"
#include "ops/common/together.hpp"

namespace vicinal::ops {
void require_agreement(Communicator& ranks, std::span<const Agreed> values) {
  std::vector<std::int64_t> own;
  for (const Agreed& value : values) own.push_back(value.value);
  const std::vector<std::int64_t> all = gathered(ranks, own);
  alike([&] {
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t rank = 1; rank < all.size() / own.size(); ++rank) {
        if (all[rank * own.size() + i] == all[i]) continue;
        refuse(std::string(values[i].name) + ": is not the same on ranks 0 and " + std::to_string(rank));
      }
    }
  });
}

std::vector<std::int64_t> gathered(Communicator& ranks, std::span<const std::int64_t> own) {
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks.size()),
                                        static_cast<std::int64_t>(own.size_bytes()));
  std::vector<std::int64_t> all(own.size() * sizes.size());
  ranks.all_gather(std::as_bytes(own), sizes, std::as_writable_bytes(std::span(all)));
  return all;
}

std::vector<std::int64_t> gathered(Communicator& ranks, std::int64_t own) {
  return gathered(ranks, std::array{own});
}

std::vector<std::int64_t> begins_of(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> begins = {0};
  for (const std::int64_t count : counts) begins.push_back(begins.back() + count);
  return begins;
}

std::vector<std::int64_t> row_begins(Communicator& ranks, std::int64_t rows, std::int64_t first_row) {
  std::vector<std::int64_t> begins = begins_of(gathered(ranks, rows));
  const std::vector<std::int64_t> firsts = gathered(ranks, first_row);
  alike([&] {
    for (std::size_t rank = 0; rank < firsts.size(); ++rank) {
      if (firsts[rank] == begins[rank]) continue;
      refuse("first_row: is " + std::to_string(firsts[rank]) + " on rank " + std::to_string(rank) +
             ", but the ranks before it have " + std::to_string(begins[rank]) + " rows");
    }
  });
  return begins;
}

}  // namespace vicinal::ops

// The page of `vicinal-bench papers`: every table with the paper's figures next to ours, in one file that loads
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command/papers_tables.hpp"

namespace vicinal::cli {

/// How much of the papers' sizes ran.
struct PaperSizes {
  std::string text;
  std::int64_t most_rows = 0;
  bool cut = false;  ///< to `most_rows`
};

/// HTML of the tables; `head` has date, version, commit and machine; `verdict` is of all answers, also those
/// that belong to no table.
std::string papers_page(const Json& head, const PaperSizes& sizes, const Verdict& verdict,
                        const std::vector<PaperTable>& tables);

}  // namespace vicinal::cli

// The report of `vicinal lof`: one page with how the scores lie, which rows stand out and by which columns, and what
// the labels say of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lof/output.hpp"

namespace vicinal::cli::report {

/// Everything is borrowed.
struct OutliersReport {
  std::string file;
  std::vector<std::pair<std::string, std::string>> how;  ///< what was asked for, name and value
  const Lof* lof = nullptr;
  const ScoredRows* scored = nullptr;
  const Preparation* preparation = nullptr;
  double seconds = 0;
};

std::string render(const Context& ctx, const OutliersReport& report);

}  // namespace vicinal::cli::report

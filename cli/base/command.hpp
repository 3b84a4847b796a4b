// A subcommand: where it hangs in the option parser and what it does once the options are known.
// One file a subcommand; each offers one add_* function.
#pragma once

#include <functional>

#include "base/parser.hpp"

namespace vicinal::cli {

struct Command {
  Parser app;                  ///< the parser's own node, owned by the root
  std::function<void()> run;   ///< throws vicinal::Error for anything that goes wrong
  const bool* json = nullptr;  ///< whether --json was given
};

}  // namespace vicinal::cli

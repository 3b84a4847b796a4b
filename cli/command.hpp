// A subcommand: where it hangs in the option parser and what it does once the options are known.
// One file a subcommand; each offers one add_* function, and main.cpp lists them all.
#pragma once

#include <functional>

#include "parser.hpp"

namespace vicinal::cli {

struct Command {
  Parser app;                  ///< the parser's own node, owned by the root
  std::function<void()> run;   ///< throws vicinal::Error for anything that goes wrong
  const bool* json = nullptr;  ///< whether --json was given
};

Command add_knn(const Parser& root);
Command add_radius(const Parser& root);
Command add_classify(const Parser& root);
Command add_regress(const Parser& root);
Command add_kmeans(const Parser& root);
Command add_lof(const Parser& root);
Command add_lle(const Parser& root);
Command add_match(const Parser& root);
Command add_cocluster(const Parser& root);
Command add_convert(const Parser& root);
Command add_info(const Parser& root);
Command add_doctor(const Parser& root);
Command add_bench(const Parser& root);
Command add_generate(const Parser& root);
Command add_completion(const Parser& root);

}  // namespace vicinal::cli

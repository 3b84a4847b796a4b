// A subcommand: where it hangs in the option parser and what it does once the options are known.
// One file a subcommand; each offers one add_* function, and main.cpp lists them all.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

namespace vicinal::cli {

struct Command {
  CLI::App* app = nullptr;     ///< the parser's own node, owned by the root
  std::function<void()> run;   ///< throws vicinal::Error for anything that goes wrong
  const bool* json = nullptr;  ///< whether --json was given
};

Command add_knn(CLI::App& root);
Command add_radius(CLI::App& root);
Command add_classify(CLI::App& root);
Command add_kmeans(CLI::App& root);
Command add_info(CLI::App& root);
Command add_doctor(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_generate(CLI::App& root);
Command add_completion(CLI::App& root);

}  // namespace vicinal::cli

// Shell completion, made from the parser's own list of subcommands and options, so that it cannot go stale.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vicinal::cli {

/// The script for "bash", "zsh" or "fish".
std::string completion_script(const CLI::App& root, const std::string& shell);

}  // namespace vicinal::cli

// A program of subcommands: parses, runs one, turns errors into exit codes:
// 0 ok, 1 internal, 2 usage, 3 bad data or files, 4 over the memory limit, 5 device unavailable, 130 interrupted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/command.hpp"
#include "base/parser.hpp"

namespace vicinal::cli {

struct Program {
  const char* name;
  const char* description;
  std::vector<std::string> examples;
  std::vector<std::function<Command(const Parser&)>> commands;
};

/// The exit code.
int run_program(const Program& program, int argc, char** argv);

}  // namespace vicinal::cli

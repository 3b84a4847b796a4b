// The files that a command writes. They appear together, and the command ends by naming them: as `files` of its JSON
// (print_result), or in one line on stderr after everything else (print_written_files, which the program calls).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "io/atomic_file.hpp"

namespace vicinal::cli {

/// While it lives, files that this thread writes wait for commit(), which has all of them appear and keeps their names.
/// Standard output and pipes are no files: they are written at once, and not named.
class OutputFiles {
 public:
  OutputFiles();
  void commit();

 private:
  io::OutputGroup group_;
};

/// One JSON object and a line end: what a command found, with `files`, the names of all files that it wrote.
void print_result(nlohmann::ordered_json json);

/// "written: labels.csv, report.html" on stderr; nothing where no file was written, where JSON has said it, and with
/// --quiet.
void print_written_files();

}  // namespace vicinal::cli

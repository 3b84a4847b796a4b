// Columns of a table that are none of those that rows are compared by: labels or targets, ids, and what was left out. A
// model keeps them in its notes, so that a file that has them can be asked about as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "vicinal/io.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal::cli {

/// By name, or by position where the table has no names.
struct KnownColumns {
  std::vector<std::string> columns;  ///< that held labels or targets
  std::vector<std::string> dropped;
  std::string id;

  void add_to(Json& notes) const;
  /// A model's notes that have nothing else; empty where nothing is known.
  [[nodiscard]] std::string notes() const;
  /// Of a model's notes; nothing where a program has made it, with notes of its own. `file` is the model's.
  static KnownColumns of(const std::string& notes, const std::string& file);
};

/// Whether a column is given by its position.
bool is_position(const std::string& column);

/// Those that the file names are known by their names from now on.
KnownColumns by_names(const Context& ctx, const std::string& file, KnownColumns columns);

/// Leaves out the column of ids, where the file has it: of a table whose rows are not told of.
void leave_out_ids(const Context& ctx, const std::string& file, ReadOptions& reading, const std::string& id);

/// How a file of rows to answer for is read, so that its columns are those of a model.
struct AskedReading {
  ReadOptions options;
  std::vector<std::string> labels;  ///< of KnownColumns::columns those that the file has: all, or none
};
/// `given` is what the user says of that file: columns of labels and what is dropped need not be there. Columns of the
/// model are found by name, or by position; those that are neither the model's nor known are left out with a note.
/// `width`: of the model, where its preparation has no columns. `with_labels`: the one column that holds labels is read
/// as such. Throws `bad_data` naming columns of the model that the file lacks.
AskedReading asked_reading(const Context& ctx, const std::string& file, ReadOptions given, const KnownColumns& known,
                           const Preparation& preparation, std::int64_t width, bool with_labels);

}  // namespace vicinal::cli

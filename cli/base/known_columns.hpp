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

/// What columns a file has, looked at once, as a command asks several times. Rows are not counted.
const FileInfo& look(const Context& ctx, const std::string& file, const ReadOptions& reading);

/// Those that the file, read so, names are known by their names from now on.
KnownColumns by_names(const Context& ctx, const std::string& file, const ReadOptions& reading, KnownColumns columns);

/// Of a table whose rows are not told of, read so: which of its columns is the one that --id names or numbers in the
/// file of the rows that are; empty where it has no such column. A position means the column that `asked` has there, by
/// its name; only where one of the two has no names does it mean the same position in both. Where `asked` is empty the
/// file cannot be looked at yet: that is left to `require_same_id`.
std::string id_in_table(const Context& ctx, const std::string& file, const std::string& asked,
                        const ReadOptions& reading, const std::string& id);
/// Of a second table, read so, whose rows are told of as those of the first one are: its column of ids. A position
/// given as --id counts in the first table, `file`, and means the column of that name, `there`, in the second one,
/// `other`; the same position only where one of the two has no names. Throws `invalid_argument` where `other` has no
/// such column.
std::string same_id(const Context& ctx, const std::string& file, const std::string& other, const ReadOptions& reading,
                    const std::string& id, const std::string& there);
/// Throws `invalid_argument` where a position given as --id is that of the column `there` in a table, and not of the
/// same one here, in `file`.
void require_same_id(const std::string& file, const std::vector<std::string>& names, const std::string& id,
                     const std::string& there);

/// What is known of a file before it is read.
struct SeenColumns {
  std::vector<std::string> names;  ///< none where it has none
  std::int64_t fields = 0;
  bool has_index = false;  ///< the first column counts the rows and is no part of the table
};
/// How a file of rows to answer for is read, so that its columns are those of a model.
struct AskedReading {
  ReadOptions options;
  std::vector<std::string> labels;  ///< of KnownColumns::columns those that the file has: all, or none
};
/// `given` is what the user says of that file; a column that it names must be there. Columns of the model are found by
/// name, or by position, and so are those that are known, which need not be there; those that are neither are left out
/// with a note. `width`: of the model, where its preparation has no columns. `with_labels`: the one column that holds
/// labels is read as such. Throws `bad_data` naming columns of the model that the file lacks.
AskedReading asked_reading(const std::string& file, const SeenColumns& seen, ReadOptions given,
                           const KnownColumns& known, const Preparation& preparation, std::int64_t width,
                           bool with_labels);
/// Looks at the file first. Where it is no CSV and no JSON lines its columns are the model's.
AskedReading asked_reading(const Context& ctx, const std::string& file, ReadOptions given, const KnownColumns& known,
                           const Preparation& preparation, std::int64_t width, bool with_labels);

}  // namespace vicinal::cli

// Scoring of rows from standard input as they come: a line in, a line out.
#pragma once

#include <string>

#include "base/common_options.hpp"
#include "base/known_columns.hpp"
#include "vicinal/lof.hpp"

namespace vicinal::cli {

struct StreamIds {
  std::string column;    ///< by name or position; empty: none
  std::string in_table;  ///< the same in the table that rows are compared with, whose position it is; empty: unknown
};

/// Answers each line of standard input, one CSV row, by a line `row,score,outlier` on standard output, whose rows are
/// counted from 0 over all lines that are not blank, begin with # or name the columns. With --json each answer is a
/// JSON object in a line, with `row`, `line` (from 1, over all lines), the score under its name and `outlier`. A line
/// that is no row of the model's table is told on stderr with its number, and gets no answer, but with --json an object
/// with `row`, `line` and `error`; its row is counted. What has arrived is answered when the input pauses, some
/// thousand rows at a time. Columns are found as `asked_reading` finds them, where the first line names them; `known`
/// ones are left out. Ids, where there are any, stand in place of `row`; the heading then waits for the first line,
/// which may name them. Memory: O(a few MB of lines), whatever the length of the input. Throws what `novelty` throws
/// that is no fault of a line, `cancelled`.
void score_stream(const Runtime& runtime, const CommonOptions& common, const InputOptions& input, const LofModel& model,
                  const KnownColumns& known, const StreamIds& ids);

}  // namespace vicinal::cli

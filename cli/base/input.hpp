// Reading what a subcommand was given: tables, filters, and single values of a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.hpp"
#include "base/common_options.hpp"
#include "vicinal/io.hpp"
#include "vicinal/knn.hpp"

namespace vicinal::cli {

/// Runs `work`. The library knows only its arguments `table` and `queries`; an error about a value in one of them is
/// told with the file that it came from.
void naming_files(const std::string& table_file, const std::string& queries_file, const std::function<void()>& work);

/// A subcommand that runs so: its files are train() and test().
template <class Options>
Command command_naming_files(const Parser& app, const std::shared_ptr<Options>& command) {
  return {app, [command] { naming_files(command->train(), command->test(), [&] { command->run(); }); },
          &command->common.json};
}

/// Options of the library's reader; `label` is left empty.
ReadOptions read_options(const InputOptions& options);

/// `read_table`, whose notes are printed when the command ends.
Table read_rows(const Context& ctx, const std::string& file, const ReadOptions& options = {});
/// Refuses labels from two places: the columns that --label names, and the file that --labels names.
void refuse_labels_twice(const std::string& label, const std::string& file);
/// Throws `bad_data` unless there is a label for each row of a table; `option` and `file` stand for them.
void require_labels(const std::string& option, const std::string& file, const Labels& labels, std::int64_t rows);
/// Columns of a CSV as references: the position, or the name where a position would be taken for one.
std::vector<std::string> references_of(const FileInfo& info);

/// `read_rows`; of a sparse file it tells that it became dense.
Table load_table(const Runtime& runtime, const CommonOptions& common, const std::string& file,
                 const ReadOptions& options);

/// Whether a word stands near the beginning of a file, as GDAL tells GeoJSON from TopoJSON.
bool begins_with_word(const std::string& file, std::string_view word);

/// One bit a table row from a file of bools or uint8. Throws `bad_data` when it does not number the rows.
std::vector<std::uint64_t> read_filter(const Context& ctx, const std::string& path, std::int64_t rows);

/// The value at (i, j) as float64, exactly. Host tables only.
double value_at(const TableView& view, std::int64_t i, std::int64_t j);

/// KnnOptions without k, exclude: metric, p, method and filter (borrowed from `filter_words`).
KnnOptions knn_options(const SearchOptions& options, std::int64_t k, const std::vector<std::uint64_t>& filter_words);
RadiusOptions radius_options(const SearchOptions& options, double radius,
                             const std::vector<std::uint64_t>& filter_words);

}  // namespace vicinal::cli

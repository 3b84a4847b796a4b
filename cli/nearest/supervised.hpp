// What classify and regress have in common: which rows answer (TRAIN, prepared, or a model), how many of them or how
// near, the choice of k by cross-validation, and how other rows are read to be asked of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/common_options.hpp"
#include "base/known_columns.hpp"
#include "base/output.hpp"
#include "base/planned_inputs.hpp"
#include "base/preparation.hpp"
#include "base/row_names.hpp"
#include "report/neighbor_profile.hpp"
#include "vicinal/cross_validate.hpp"
#include "vicinal/io.hpp"
#include "vicinal/neighbor_model.hpp"

namespace vicinal::cli {

struct SupervisedOptions {
  CommonOptions common;
  SearchOptions search;
  InputOptions input;
  PreparationArguments prepared;
  std::string first;   ///< TRAIN; with --model TEST
  std::string second;  ///< TEST; may be empty
  std::string id;      ///< column of TEST
  std::string k = "5";
  double radius = 0;
  std::string weights = "uniform";
  std::string outlier;
  std::int64_t folds = 0;
  std::uint64_t seed = 0;
  std::string model;
  std::string save_model;
  std::string output;
  std::string report;
  std::optional<Option> radius_option;
  std::vector<Option> of_fitting;  ///< options that a model has settled

  [[nodiscard]] const std::string& train() const { return model.empty() ? first : model; }
  [[nodiscard]] const std::string& test() const { return model.empty() ? second : first; }
  [[nodiscard]] bool by_radius() const { return radius_option && radius_option->given(); }
};

/// All options but the labels' or targets' own.
void add_supervised_options(const Parser& app, SupervisedOptions& options, const std::string& asked);
/// Refuses options that do not go together, and places that cannot be written.
void check_supervised(const SupervisedOptions& options);

struct KRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// Of "5" or "1..25". Throws `invalid_argument` for any other form.
KRange parse_k(const std::string& text);

/// What rows are asked of. `model` has its index, labels or targets and options; k of a choice is filled in later.
struct Fitted : KnownColumns {
  Table rows;  ///< prepared; none where a model was read
  std::optional<NeighborModel> model;
  Preparation preparation;
  std::string outlier;  ///< what a row without neighbors is; empty: an error
  double prepare_seconds = 0;
  std::optional<CrossValidation> chosen;
};

/// What TRAIN has besides the columns that are compared; `columns` hold labels or targets. To be asked before TRAIN is
/// read: a pipe cannot be looked at after that.
KnownColumns known_columns(const Context& ctx, const SupervisedOptions& options,
                           const std::vector<std::string>& columns);
/// TRAIN, prepared; the columns that are `known` are no part of `table`. Labels and targets are the caller's to fill
/// in. Memory of preparing is planned with the inputs; `rest` is what they leave.
Fitted fit(const Context& ctx, const Context& rest, const SupervisedOptions& options, Table table, KnownColumns known);

/// Bytes a row, of what is known of rows and of answers.
struct RowBytes {
  std::uint64_t known = 0;     ///< as it is held, of TRAIN
  std::uint64_t copied = 0;    ///< by the library, of TRAIN
  std::uint64_t answered = 0;  ///< of TEST, what is known of it included
  report::ProfileDepth page;   ///< of neighbors, for the page
};
/// Their sum for so many rows of TRAIN and TEST, beside a search.
std::uint64_t bytes_beside(const RowBytes& bytes, std::int64_t rows, std::int64_t asked);
/// One plan for TRAIN, read by `training`, TEST and what is made of them, before they are read; other files are added
/// to `inputs` before. The context that fitting and answering get.
Context plan_supervised(const SupervisedOptions& options, PlannedInputs& inputs, const ReadOptions& training,
                        const RowBytes& bytes);

/// The model file, and what of it is the command's.
Fitted load_fitted(const Context& ctx, const std::string& file);
void save_fitted(const Context& ctx, const std::string& file, const Fitted& fitted);

/// How many rows of TRAIN --cv or -k needs.
RowsNeeded rows_needed(const SupervisedOptions& options);
/// How TRAIN is read: texts by --categories, without the column of ids.
ReadOptions training_options(const Context& ctx, const SupervisedOptions& options);
/// A table, and where it holds text that it should not, a sentence that says which option reads it.
Table read_training(const Context& ctx, const SupervisedOptions& options, const ReadOptions& reading);

/// TEST, prepared like TRAIN. It need not have the columns that were left out there, and may have its columns in
/// another order.
struct AskedTable {
  Table table;  ///< with labels where they are in one column, and asked for; and ids
  /// Of the columns of labels or targets, those that it has: all of them, or none.
  std::vector<std::string> columns;
};
AskedTable read_asked(const Context& ctx, const SupervisedOptions& options, const Fitted& fitted, bool of_labels);
/// The columns of a CSV, read so, but one, as ReadOptions::drop wants them.
std::vector<std::string> all_columns_but(const Context& ctx, const std::string& file, const ReadOptions& how,
                                         const std::string& column);

/// The options of a search that answers: of a model, its own.
KnnOptions knn_of(const SupervisedOptions& options, const Fitted& fitted, const std::vector<std::uint64_t>& filter);
RadiusOptions radius_of(const SupervisedOptions& options, const Fitted& fitted,
                        const std::vector<std::uint64_t>& filter);
/// The first row without neighbors, where no --outlier says what it is, is refused by its number.
void require_neighbors(const Fitted& fitted, std::int64_t row);
/// "k = 5", "within 1.5".
std::string neighborhood_text(const Fitted& fitted);
/// "uniform" or "distance".
std::string weighting_text(const Fitted& fitted);
/// Of --cv, without the range's check against the table, which is the library's.
CrossValidateOptions cross_validation_of(const SupervisedOptions& options);

/// --explain: prints the plan of what would run.
void explain_supervised(const Context& ctx, const SupervisedOptions& options, const PlannedInputs& inputs,
                        const Fitted& fitted, const RowBytes& bytes);

/// What an answer says first: rows, and how they were answered.
Json answer_json(const std::string& command, std::int64_t rows, const SupervisedOptions& options, const Fitted& fitted);
/// And last: where it went, and how it was found.
void finish_json(Json& json, const SupervisedOptions& options, const Plan& plan, const SearchStats& stats,
                 double seconds);

/// Lines of text, one a k, the chosen one marked; `score` names what they hold.
std::string validation_table(const CrossValidation& found, const CrossValidateOptions& asked, const std::string& score);
Json to_json(const CrossValidation& found, const CrossValidateOptions& asked, const std::string& score);
/// "k = 7 chosen from 1..25 by 5 folds in 1.2 s".
std::string validation_sentence(const CrossValidation& found, const CrossValidateOptions& asked);

}  // namespace vicinal::cli

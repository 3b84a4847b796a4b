// One run of classify or regress: reads and plans, fits or loads, chooses k, answers, writes and says what it did. What
// is answered, and how that is scored and shown, is the derived class's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/planned_inputs.hpp"
#include "nearest/supervised.hpp"
#include "vicinal/knn.hpp"
#include "vicinal/radius_batches.hpp"

namespace vicinal::cli {

/// Options of classify or regress, and what follows from them.
struct SupervisedCommand : SupervisedOptions {
  SupervisedCommand() = default;
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;
  virtual ~SupervisedCommand() = default;

  virtual void check() const = 0;
  [[nodiscard]] virtual RowBytes row_bytes() const = 0;
  [[nodiscard]] virtual Context plan(PlannedInputs& inputs) const = 0;
  [[nodiscard]] virtual Fitted fit_rows(const Context& ctx, const Context& rest) const = 0;
};

class SupervisedRun {
 public:
  virtual ~SupervisedRun() = default;
  SupervisedRun(const SupervisedRun&) = delete;
  SupervisedRun& operator=(const SupervisedRun&) = delete;
  void run();

 protected:
  struct Words {
    std::string command;
    std::string score;  ///< of --cv: "accuracy"
  };
  /// What is known of an answer; before there is one, of nothing.
  struct Answered {
    std::int64_t rows;
    const Plan& plan;
    SearchStats& stats;
  };

  /// `options` outlives this.
  SupervisedRun(const SupervisedCommand& options, Words words);

  /// Refuses a model that another command made.
  virtual void check_model() const = 0;
  /// TEST where it is given, what is known of it, and whatever else can be wrong before the search.
  virtual void read_test(const Context& ctx) = 0;
  [[nodiscard]] virtual CrossValidation cross_validated(const Context& ctx) const = 0;

  virtual void answer(const Context& ctx, const KnnOptions& search) = 0;
  /// `watch`, where there is one, is handed the lists.
  virtual void answer(const Context& ctx, const RadiusOptions& search, const TakeLists& watch) = 0;
  /// From neighbors, which a page shows.
  virtual void answer(const Context& ctx, const NeighborGraph& graph) = 0;
  virtual Answered answered() = 0;
  /// Of rows without neighbors what --outlier says, and scores where the truth is known.
  virtual void score(const Context& ctx) = 0;

  [[nodiscard]] virtual bool is_scored() const = 0;
  [[nodiscard]] virtual std::string page(const report::NeighborProfile& profile, double seconds) const = 0;
  virtual void write(const Context& ctx) const = 0;
  virtual void add_to(Json& json) const = 0;
  /// Printed with blank lines between.
  [[nodiscard]] virtual std::vector<std::string> scores_texts() const = 0;
  [[nodiscard]] virtual std::string answers_text() const = 0;
  /// "classified in 1.2 s".
  [[nodiscard]] virtual std::string done_text(double seconds) const = 0;

  [[nodiscard]] bool has_test() const { return !options_.test().empty(); }
  /// What the pages of both begin with.
  template <class Report>
  Report report_of(const report::NeighborProfile& profile, double seconds) const {
    Report content;
    content.train_file = options_.train();
    content.test_file = options_.test();
    content.seconds = seconds;
    content.profile = &profile;
    content.train = &index().table();
    content.test = &asked_.table.view;
    content.asked = RowNames(asked_.table);
    return content;
  }
  [[nodiscard]] const Index& index() const { return fitted_.model->index; }

  Fitted fitted_;
  AskedTable asked_;  ///< to be filled by read_test

 private:
  /// Answers from neighbors, and keeps of them what a page shows.
  report::NeighborProfile answer_and_keep(const Context& rest, const std::vector<std::uint64_t>& filter);
  void print(const Runtime& runtime, double seconds);

  const SupervisedCommand& options_;
  Words words_;
};

}  // namespace vicinal::cli

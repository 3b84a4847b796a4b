// Models as Python holds them, and the rows that they are asked for.
#pragma once

#include <memory>
#include <string>

#include "answer.hpp"
#include "searched.hpp"

namespace vicinal::python {

/// A model and what its index borrows from.
template <class Model>
struct Held {
  Model model;
  std::shared_ptr<const void> storage;
};

nanobind::object lof_model_answer(const Call& call, const std::shared_ptr<const Held<LofModel>>& held);
nanobind::object lle_model_answer(const Call& call, const std::shared_ptr<const Held<LleModel>>& held);
nanobind::object hdbscan_model_answer(const Call& call, const std::shared_ptr<const Held<HdbscanModel>>& held);
nanobind::object neighbor_model_answer(const Call& call, const std::shared_ptr<const Held<NeighborModel>>& held);
nanobind::object kmeans_answer(const Call& call, const std::shared_ptr<const KMeansModel>& model);

/// Names of the columns that a model was made of, in their order; a number stands for a column without one.
std::vector<std::string> columns_of(const Preparation& preparation);

/// A part of something that is held.
template <class Part, class Whole>
std::shared_ptr<const Part> part_of(const std::shared_ptr<const Whole>& whole, const Part& part) {
  return {whole, &part};
}

/// Rows as those that a model was made of: a Table with its texts, a file, whose columns are found by the model's names
/// of them, or an array.
class ModelRows {
 public:
  ModelRows(Call& call, const Preparation& preparation, const char* name, nanobind::handle value);

  /// Calls `answer` with a Table or a TableView: the functions of a model take either.
  template <class Answer>
  void visit(const Answer& answer) const {
    if (table_ != nullptr) {
      answer(*table_);
    } else {
      answer(input_.view);
    }
  }
  [[nodiscard]] std::int64_t rows() const noexcept {
    return table_ != nullptr ? table_->view.rows() : input_.view.rows();
  }

 private:
  std::shared_ptr<const Table> table_;
  Input input_;
};

}  // namespace vicinal::python

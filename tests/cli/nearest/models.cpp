// What test_models.py asks of the library: answers by a model that the command saved, and models for the command.
//   models answer KIND MODEL ROWS COLUMN...     prints an answer a line; COLUMNs of ROWS are no part of the model's
//   rows models make KIND ROWS MODEL SCALING TEXTS   of columns that are not `class` (labels) or `y` (targets)
// KIND is classify, regress, lof or kmeans.
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "vicinal/vicinal.hpp"

namespace {

using namespace vicinal;

template <class Value>
void print(const std::vector<Value>& values) {
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (const Value value : values) std::cout << value << '\n';
}

void answer(const Context& ctx, const std::string& kind, const std::string& model, const std::string& rows,
            const std::vector<std::string>& left_out) {
  ReadOptions reading;
  reading.drop = left_out;
  if (kind == "classify") {
    const NeighborModel loaded = NeighborModel::load(ctx, model);
    const Classification found = classify(ctx, loaded, loaded.preparation.read(ctx, rows, reading));
    for (const std::int32_t code : found.votes.at(0).codes) std::cout << loaded.outputs[0].name_of(code) << '\n';
  } else if (kind == "regress") {
    const NeighborModel loaded = NeighborModel::load(ctx, model);
    print(regress(ctx, loaded, loaded.preparation.read(ctx, rows, reading)).values);
  } else if (kind == "lof") {
    const LofModel loaded = LofModel::load(ctx, model);
    print(novelty(ctx, loaded, loaded.preparation.read(ctx, rows, reading)));
  } else {
    const KMeansModel loaded = KMeansModel::load(ctx, model);
    print(predict(ctx, loaded, loaded.preparation.read(ctx, rows, reading)));
  }
}

void make(const Context& ctx, const std::string& kind, const std::string& rows, const std::string& model,
          const PreparationOptions& options) {
  ReadOptions reading;
  reading.drop = {"class", "y"};
  reading.find_text = true;
  const Table raw = read_table(ctx, rows, reading);
  const Preparation preparation = Preparation::fit(ctx, raw, options);
  const Table table = preparation.apply(ctx, raw);
  const Index index(ctx, table.view);
  if (kind == "lof") {
    const Lof fitted = lof(ctx, index, {.k = 8, .novelty = true});
    LofModel{index, fitted, {}, preparation}.save(ctx, model);
  } else if (kind == "kmeans") {
    KMeansModel{kmeans(ctx, table.view, {.clusters = 4, .seed = 2}), {}, preparation}.save(ctx, model);
  } else {
    NeighborModel made{.index = index, .k = 3, .notes = "not the command's", .preparation = preparation};
    if (kind == "classify") made.outputs = {read_labels(ctx, rows, "class")};
    ReadOptions targets;
    targets.drop = {"a", "proto", "b", "still", "class"};
    const Table values = read_table(ctx, rows, targets);
    const auto* const first = static_cast<const double*>(values.view.data());
    if (kind == "regress") made.targets.assign(first, first + values.view.rows());
    made.target_columns = made.targets.empty() ? 0 : 1;
    made.save(ctx, model);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const Context ctx = Context::cpu({.threads = 2});
  if (words.at(0) == "answer") {
    answer(ctx, words.at(1), words.at(2), words.at(3), {words.begin() + 4, words.end()});
  } else {
    make(ctx, words.at(1), words.at(2), words.at(3),
         {.scaling = scaling_from(words.at(4)), .texts = text_codes_from(words.at(5))});
  }
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return exit_code(error.code());
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

// See preparation_text.hpp.
#include "ops/common/preparation_text.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ops/common/refuse.hpp"

namespace vicinal::ops {
namespace {

using nlohmann::json;

/// Throws json::exception or `invalid_argument` for what is no preparation.
Preparation preparation_of(const json& all, std::vector<double> donors) {
  std::vector<Preparation::Column> columns;
  for (const json& one : all.at("columns")) {
    columns.push_back({one.at("name").get<std::string>(), one.at("categories").get<std::vector<std::string>>(),
                       one.at("shift").get<double>(), one.at("scale").get<double>(), one.value("one_hot", false)});
  }
  Imputer imputer;
  if (all.contains("missing")) {
    const json& missing = all.at("missing");
    std::vector<double> values;
    for (const json& value : missing.at("values")) {
      values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    }
    const ImputeOptions options{.filling = filling_from(missing.at("filling").get<std::string>()),
                                .k = missing.at("k").get<std::int64_t>()};
    imputer = Imputer::of(options, std::move(values), std::move(donors));
  }
  return Preparation::of(std::move(columns), scaling_from(all.at("scale").get<std::string>()), std::move(imputer));
}

bool is_preparation(const json& all) {
  return all.is_object() && all.contains("scale") && all.contains("columns");
}

/// The preparation in the notes of an earlier build of the command: the notes themselves, or a text in them.
json among_notes(std::string& notes) {
  json all = json::parse(notes, nullptr, false);
  if (is_preparation(all)) {
    notes.clear();
    return all;
  }
  if (!all.is_object() || !all.contains("preparation") || !all["preparation"].is_string()) return {};
  json inner = json::parse(all["preparation"].get<std::string>(), nullptr, false);
  return is_preparation(inner) ? inner : json();
}

}  // namespace

namespace {

constexpr const char* kDonors = "missing_donors";

/// JSON; empty for a preparation without columns.
std::string json_of(const Preparation& preparation, std::int64_t columns) {
  if (preparation.columns().empty()) return {};
  if (preparation.width() != columns) {
    refuse("model: its preparation makes " + std::to_string(preparation.width()) + " columns, but its rows have " +
           std::to_string(columns));
  }
  json texts = json::array();
  for (const Preparation::Column& column : preparation.columns()) {
    texts.push_back({{"name", column.name},
                     {"categories", column.categories},
                     {"one_hot", column.one_hot},
                     {"shift", column.shift},
                     {"scale", column.scale}});
  }
  json all = {{"scale", name_of(preparation.scaling())}, {"columns", texts}};
  const Imputer& imputer = preparation.imputer();
  if (imputer.filling() != Filling::none) {
    all["missing"] = {{"filling", name_of(imputer.filling())}, {"k", imputer.k()}, {"values", imputer.values()}};
  }
  try {
    return all.dump();
  } catch (const json::exception&) {
    refuse("model: the texts of its preparation are not UTF-8, which its file needs");
  }
}

}  // namespace

void add_preparation(ModelParts& parts, const Preparation& preparation, std::int64_t columns) {
  parts.metadata["preparation"] = json_of(preparation, columns);
  const TableView donors = preparation.imputer().donors();
  if (donors.rows() > 0) parts.arrays.push_back({kDonors, "F64", {donors.rows(), donors.cols()}, donors.data()});
  std::sort(parts.arrays.begin(), parts.arrays.end(),
            [](const ModelArray& a, const ModelArray& b) { return a.name < b.name; });
}

void expect_preparation(ModelReader& file) {
  static_cast<void>(file.array(kDonors, "F64", {-1, -1}));
}

Preparation read_preparation(ModelReader& file, std::int64_t columns, std::string& notes) {
  const std::string& text = file.text("preparation");
  json all = json::parse(text, nullptr, false);
  const bool before = !all.is_object();
  if (before) all = among_notes(notes);
  if (all.is_null() && text.empty()) return {};
  if (all.is_null()) {
    file.refuse("its rows were prepared (" + text + ") in a way that it does not describe; make it again");
  }
  Preparation found;
  std::vector<double> donors;
  if (const ModelArray* const array = file.array(kDonors, "F64", {-1, -1})) donors = file.values<double>(*array);
  file.require(donors.empty() || all.contains("missing"), "it has rows that nothing is filled from");
  try {
    found = preparation_of(all, std::move(donors));
  } catch (const json::exception&) {
    file.refuse("its preparation is not one for " + std::to_string(columns) + " columns");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    file.refuse("its preparation is not one for " + std::to_string(columns) + " columns");
  }
  file.require(!found.columns().empty() && found.width() == columns,
               "its preparation is not one for " + std::to_string(columns) + " columns");
  return found;
}

std::string summary_of(const Preparation& preparation) {
  std::string words;
  if (preparation.scaling() != Scaling::none) {
    words = "scaling " + std::string(name_of(preparation.scaling()));
  }
  if (preparation.imputer().filling() != Filling::none) {
    words += (words.empty() ? "" : ", ");
    words += "missing values by " + std::string(name_of(preparation.imputer().filling()));
  }
  if (!preparation.has_texts()) return words;
  const auto& columns = preparation.columns();
  const bool one_hot =
      std::any_of(columns.begin(), columns.end(), [](const Preparation::Column& column) { return column.one_hot; });
  return words + (words.empty() ? "" : ", ") + "texts " +
         std::string(name_of(one_hot ? TextCodes::one_hot : TextCodes::ordinal));
}

}  // namespace vicinal::ops

// See preparation_text.hpp.
#include "ops/common/preparation_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "ops/common/refuse.hpp"

namespace vicinal::ops {
namespace {

using nlohmann::json;

/// Throws json::exception or `invalid_argument` for what is no preparation.
Preparation preparation_of(const json& all) {
  std::vector<Preparation::Column> columns;
  for (const json& one : all.at("columns")) {
    columns.push_back({one.at("name").get<std::string>(), one.at("categories").get<std::vector<std::string>>(),
                       one.at("shift").get<double>(), one.at("scale").get<double>(), one.value("one_hot", false)});
  }
  return Preparation::of(std::move(columns), scaling_from(all.at("scale").get<std::string>()));
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

std::string text_of(const Preparation& preparation, std::int64_t columns) {
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
  try {
    return json{{"scale", name_of(preparation.scaling())}, {"columns", texts}}.dump();
  } catch (const json::exception&) {
    refuse("model: the texts of its preparation are not UTF-8, which its file needs");
  }
}

Preparation read_preparation(const ModelReader& file, std::int64_t columns, std::string& notes) {
  const std::string& text = file.text("preparation");
  json all = json::parse(text, nullptr, false);
  const bool before = !all.is_object();
  if (before) all = among_notes(notes);
  if (all.is_null() && text.empty()) return {};
  if (all.is_null()) {
    file.refuse("its rows were prepared (" + text + ") in a way that it does not describe; make it again");
  }
  Preparation found;
  try {
    found = preparation_of(all);
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
  if (!preparation.has_texts()) return words;
  const auto& columns = preparation.columns();
  const bool one_hot =
      std::any_of(columns.begin(), columns.end(), [](const Preparation::Column& column) { return column.one_hot; });
  return words + (words.empty() ? "" : ", ") + "texts " +
         std::string(name_of(one_hot ? TextCodes::one_hot : TextCodes::ordinal));
}

}  // namespace vicinal::ops

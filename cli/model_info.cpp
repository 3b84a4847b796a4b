// See model_info.hpp. The header of the file says which model it is; the library loads it, and so checks all of it.
#include "model_info.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "io/shown.hpp"
#include "vicinal/hdbscan_model.hpp"
#include "vicinal/io.hpp"
#include "vicinal/kmeans_model.hpp"
#include "vicinal/lle_model.hpp"
#include "vicinal/lof.hpp"
#include "vicinal/neighbor_model.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kTextsShown = 12;

/// "vicinal-lof", from the header of a safetensors file; empty for other files.
std::string model_format(const Context& ctx, const std::string& file) {
  constexpr std::uint64_t kLargestHeader = std::uint64_t{64} << 20;
  const auto at_most = [&](std::uint64_t bytes) { return read_bytes(ctx, file, bytes); };
  const FileBytes begin = at_most(9);
  if (begin.bytes.size() < 9 || begin.bytes[8] != '{') return {};
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | begin.bytes[i];
  if (length < 2 || length > kLargestHeader) return {};
  const FileBytes all = at_most(8 + length);
  const std::string_view header(reinterpret_cast<const char*>(all.bytes.data()) + 8, all.bytes.size() - 8);
  // A quote within a text of the header stands behind a backslash.
  constexpr std::string_view kKey = R"("format":"vicinal-)";
  const std::size_t at = header.find(kKey);
  if (at == std::string_view::npos) return {};
  const std::size_t from = at + kKey.size();
  const std::size_t end = header.find('"', from);
  return end == std::string_view::npos ? std::string() : std::string(header.substr(from, end - from));
}

Json prepared_columns(const Preparation& preparation) {
  Json columns = Json::array();
  for (const Preparation::Column& column : preparation.columns()) {
    Json entry = {{"name", column.name}, {"type", column.categories.empty() ? "number" : "text"}};
    if (!column.categories.empty()) {
      entry["texts"] = column.categories.size();
      entry["codes"] = column.one_hot ? "onehot" : "ordinal";
    }
    columns.push_back(entry);
  }
  return columns;
}

void add_rows(Json& json, std::int64_t rows, std::int64_t cols, const Preparation& preparation) {
  if (rows >= 0) json["rows"] = rows;
  json["compared_columns"] = cols;
  if (preparation.columns().empty()) return;
  json["columns"] = prepared_columns(preparation);
  json["scale"] = name_of(preparation.scaling());
}

void add_metric(Json& json, Metric metric, double p) {
  json["metric"] = name_of(metric);
  if (metric == Metric::minkowski) json["p"] = p;
}

Json of_neighbors(const NeighborModel& model) {
  Json json = {{"kind", model.outputs.empty() ? "regress" : "classify"}};
  add_rows(json, model.index.rows(), model.index.cols(), model.preparation);
  if (model.k > 0) json["k"] = model.k;
  if (model.k == 0) json["radius"] = model.radius;
  add_metric(json, model.metric, model.p);
  json["weights"] = model.weights == Weighting::distance ? "distance" : "uniform";
  for (const Labels& labels : model.outputs) {
    Json classes = Json::array();
    for (std::int64_t c = 0; c < labels.class_count(); ++c) classes.push_back(labels.name_of(c));
    json["classes"].push_back(classes);
  }
  if (model.outputs.empty()) json["targets"] = model.target_columns;
  return json;
}

Json of_clusters(const KMeansModel& model) {
  Json json = {{"kind", "kmeans"}};
  add_rows(json, -1, model.fitted.cols, model.preparation);
  json["clusters"] = model.fitted.clusters;
  json["sizes"] = model.fitted.sizes;
  add_metric(json, model.fitted.metric, 2);
  json["inertia"] = model.fitted.inertia;
  json["iterations"] = model.fitted.iterations;
  return json;
}

Json of_outliers(const LofModel& model) {
  const LofOptions& options = model.fitted.options;
  Json json = {{"kind", "lof"}};
  add_rows(json, model.index.rows(), model.index.cols(), model.preparation);
  json["score"] = name_of(options.score);
  json["k"] = options.k;
  if (options.k_to > options.k) json["k_to"] = options.k_to;
  add_metric(json, options.metric, options.p);
  json["threshold"] = model.fitted.threshold;
  json["outliers"] = model.fitted.outliers;
  return json;
}

Json of_embedding(const LleModel& model) {
  Json json = {{"kind", "lle"}};
  add_rows(json, model.index.rows(), model.index.cols(), model.preparation);
  json["k"] = model.fitted.options.k;
  json["dimensions"] = model.index.rows() > 0 ? std::ssize(model.fitted.embedding) / model.index.rows() : 0;
  json["pieces"] = model.fitted.pieces.size();
  return json;
}

Json of_density(const HdbscanModel& model) {
  const HdbscanOptions& options = model.fitted.options;
  Json json = {{"kind", "hdbscan"}};
  add_rows(json, model.index.rows(), model.index.cols(), model.preparation);
  json["clusters"] = model.fitted.clusters;
  json["sizes"] = model.fitted.sizes;
  json["noise"] = model.fitted.noise;
  json["min_cluster_size"] = options.min_cluster_size;
  add_metric(json, options.metric, options.p);
  return json;
}

std::string one_value(const Json& value) {
  if (value.is_string()) return io::printable(value.get<std::string>());
  if (value.is_number_integer()) return format_count(value.get<std::int64_t>());
  return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : value.dump();
}

/// The first of many, parted by commas.
std::string some_of(const std::vector<std::string>& texts) {
  const std::size_t shown = std::min(texts.size(), kTextsShown);
  const std::vector<std::string> some(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shown));
  return fmt::format("{}{}", fmt::join(some, ", "),
                     shown < texts.size() ? fmt::format(" and {} more", texts.size() - shown) : "");
}

}  // namespace

std::optional<Json> describe_model(const Context& ctx, const std::string& file) {
  const std::string format = model_format(ctx, file);
  if (format == "neighbors") return of_neighbors(NeighborModel::load(ctx, file));
  if (format == "clusters") return of_clusters(KMeansModel::load(ctx, file));
  if (format == "density") return of_density(HdbscanModel::load(ctx, file));
  if (format == "lof") return of_outliers(LofModel::load(ctx, file));
  if (format == "embedding") return of_embedding(LleModel::load(ctx, file));
  if (format != "index") return std::nullopt;
  Json json = {{"kind", "index"}};
  const Index index = Index::load(ctx, file);
  add_rows(json, index.rows(), index.cols(), {});
  return json;
}

std::string model_text(const Json& model) {
  std::string text;
  for (const auto& [name, value] : model.items()) {
    if (name == "kind") continue;
    std::string line;
    if (name == "columns") {
      std::vector<std::string> columns;
      for (std::size_t j = 0; j < value.size(); ++j) {
        const auto& column = value[j];
        std::string one = column["name"].get<std::string>();
        one = one.empty() ? fmt::format("{}", j) : io::printable(one);
        if (column.contains("texts")) {
          one += fmt::format(" ({} texts, {})", column["texts"].get<std::size_t>(), column["codes"].get<std::string>());
        }
        columns.push_back(one);
      }
      line = some_of(columns);
    } else if (value.is_array()) {
      std::vector<std::string> parts;
      for (const auto& part : value) {
        std::vector<std::string> texts;
        if (part.is_array()) {
          for (const auto& one : part) texts.push_back(one_value(one));
        }
        parts.push_back(part.is_array() ? some_of(texts) : one_value(part));
      }
      line = value.size() > 0 && value[0].is_array() ? fmt::format("{}", fmt::join(parts, "; ")) : some_of(parts);
    } else {
      line = one_value(value);
    }
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    text += fmt::format("{:<16}  {}\n", label, line);
  }
  return text;
}

}  // namespace vicinal::cli

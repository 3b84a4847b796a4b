// See papers_attacks.hpp. Columns are brought to mean 0 and deviation 1 by the training rows.
#include "command/papers_attacks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/machine.hpp"
#include "core/philox.hpp"
#include "vicinal/classify.hpp"
#include "vicinal/generate.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {
namespace {

constexpr std::int64_t kDraws = 10;
constexpr std::int64_t kTrainNormal = 4900;
constexpr std::int64_t kTrainAttacks = 100;
constexpr std::int64_t kTestNormal = 400;
constexpr std::int64_t kTestAttacks = 100;
constexpr std::int64_t kPoolRows = 60000;
constexpr std::int64_t kNeighborCounts[] = {1, 3, 5, 7, 9, 15, 25, 51};

/// Rows with kinds: 0 is normal.
struct Pool {
  std::string source;
  std::vector<double> points;
  std::vector<std::int64_t> kinds;
  std::int64_t cols = 0;
};

/// A draw: rows and whether they are attacks.
struct AttackRows {
  std::vector<double> points;
  std::vector<std::int64_t> attacks;
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(attacks.size()); }
};

/// The files that bench/data/papers.py writes, else synthetic rows.
Pool pool_of(const Context& ctx, const PapersOptions& options) {
  const std::filesystem::path folder = options.data_dir;
  const auto table_file = folder / "kdd-pool.npy";
  if (options.data_dir.empty() || !std::filesystem::exists(table_file)) {
    Generated made = generate(ctx, {.shape = Shape::kdd, .rows = kPoolRows, .seed = 1999});
    return {"synthetic kdd", std::move(made.points), std::move(made.labels), made.cols};
  }
  // The last column is the kind.
  const Table table = read_table(ctx, table_file);
  const std::vector<double> values = reference::widen(table.view);
  const std::int64_t width = table.view.cols();
  Pool pool{"kdd", {}, {}, width - 1};
  for (auto row = values.begin(); row != values.end(); row += width) {
    pool.points.insert(pool.points.end(), row, row + pool.cols);
    pool.kinds.push_back(static_cast<std::int64_t>(row[pool.cols]));
  }
  return pool;
}

/// Takes rows of a pool in an order that is drawn, each once.
class Picker {
 public:
  Picker(const Pool& pool, std::int64_t draw) : pool_(pool) {
    order_.resize(pool.kinds.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = order_.size() - 1; i > 0; --i) {
      const double u = core::philox_uniform(2019, static_cast<std::uint64_t>(draw), i);
      std::swap(order_[i], order_[static_cast<std::size_t>(u * static_cast<double>(i + 1))]);
    }
  }

  /// Up to `count` rows of which `wanted(kind)` is true; of attacks at most `most` of a kind, so that smurf, half of
  /// the data, is not all.
  template <class Wanted>
  void take(std::int64_t count, std::int64_t most, AttackRows& to, Wanted wanted) {
    std::vector<std::int64_t> taken(
        static_cast<std::size_t>(*std::max_element(pool_.kinds.begin(), pool_.kinds.end()) + 1));
    for (std::int64_t& row : order_) {
      if (count == 0) return;
      if (row < 0) continue;
      const std::int64_t kind = pool_.kinds[static_cast<std::size_t>(row)];
      if (!wanted(kind) || taken[static_cast<std::size_t>(kind)] == most) continue;
      ++taken[static_cast<std::size_t>(kind)];
      const auto first = pool_.points.begin() + row * pool_.cols;
      to.points.insert(to.points.end(), first, first + pool_.cols);
      to.attacks.push_back(kind == 0 ? 0 : 1);
      row = -1;
      --count;
    }
  }

 private:
  const Pool& pool_;
  std::vector<std::int64_t> order_;
};

void standardize(AttackRows& train, AttackRows& test, std::int64_t cols) {
  for (std::int64_t j = 0; j < cols; ++j) {
    double sum = 0;
    double square = 0;
    for (std::int64_t i = 0; i < train.rows(); ++i) sum += train.points[static_cast<std::size_t>(i * cols + j)];
    const double mean = sum / static_cast<double>(train.rows());
    for (std::int64_t i = 0; i < train.rows(); ++i) {
      square += std::pow(train.points[static_cast<std::size_t>(i * cols + j)] - mean, 2);
    }
    const double deviation = square > 0 ? std::sqrt(square / static_cast<double>(train.rows())) : 1;
    for (AttackRows* const rows : {&train, &test}) {
      for (std::int64_t i = 0; i < rows->rows(); ++i) {
        double& value = rows->points[static_cast<std::size_t>(i * cols + j)];
        value = (value - mean) / deviation;
      }
    }
  }
}

struct AttackDraw {
  AttackRows train;
  AttackRows test;
};

/// Kinds of attacks are trained where (kind + draw) is even, and tested where it is odd.
AttackDraw attack_draw(const Pool& pool, std::int64_t draw, double share) {
  Picker picker(pool, draw);
  const auto part = [share](std::int64_t count) {
    return std::max<std::int64_t>(2, static_cast<std::int64_t>(static_cast<double>(count) * share));
  };
  AttackDraw made;
  const auto all = static_cast<std::int64_t>(pool.kinds.size());
  const auto normal = [](std::int64_t kind) { return kind == 0; };
  picker.take(part(kTrainNormal), all, made.train, normal);
  picker.take(part(kTrainAttacks), 40, made.train, [&](auto kind) { return kind > 0 && (kind + draw) % 2 == 0; });
  picker.take(part(kTestNormal), all, made.test, normal);
  picker.take(part(kTestAttacks), 40, made.test, [&](auto kind) { return kind > 0 && (kind + draw) % 2 == 1; });
  standardize(made.train, made.test, pool.cols);
  return made;
}

/// What a classifier said of all draws.
struct Rates {
  std::int64_t attacks = 0;
  std::int64_t detected = 0;
  std::int64_t normal = 0;
  std::int64_t alarms = 0;

  void add(std::int64_t is_attack, std::int64_t said) {
    (is_attack != 0 ? attacks : normal) += 1;
    (is_attack != 0 ? detected : alarms) += said;
  }
  [[nodiscard]] double detection() const { return static_cast<double>(detected) / static_cast<double>(attacks); }
  [[nodiscard]] double false_alarms() const { return static_cast<double>(alarms) / static_cast<double>(normal); }
};

}  // namespace

PapersPart measure_papers_attacks(const PapersOptions& options) {
  const Runtime runtime = make_runtime(options.common);
  const Pool pool = pool_of(runtime.ctx, options);
  const double share =
      std::min(1.0, static_cast<double>(options.most_rows) / static_cast<double>(kTrainNormal + kTrainAttacks));
  std::vector<Rates> ours(std::size(kNeighborCounts));
  std::vector<Rates> theirs(std::size(kNeighborCounts));
  std::vector<Verdict> verdicts(std::size(kNeighborCounts));
  for (std::int64_t draw = 0; draw < kDraws; ++draw) {
    const AttackDraw made = attack_draw(pool, draw, share);
    const TableView table(made.train.points.data(), made.train.rows(), pool.cols);
    const TableView queries(made.test.points.data(), made.test.rows(), pool.cols);
    const Labels labels = encode_labels(std::span<const std::int64_t>(made.train.attacks));
    const ListCheck check(table, &queries, !options.verify ? 1 : queries.rows());
    for (std::size_t i = 0; i < std::size(kNeighborCounts); ++i) {
      const std::int64_t k = std::min(kNeighborCounts[i], table.rows());
      Classification found =
          classify(runtime.ctx, table, queries, {&labels, 1}, {.k = k, .method = Method::product_timed});
      std::vector<std::int32_t>& codes = found.votes[0].codes;
      if (options.spoil) codes[0] = 1 - codes[0];
      for (std::size_t q = 0; q < codes.size(); ++q) ours[i].add(made.test.attacks[q], codes[q]);
      if (!options.verify) continue;
      verdicts[i] += check.of_votes(k, labels, codes);
      const std::vector<std::int32_t> wanted = check.votes(k, labels);
      for (std::size_t q = 0; q < wanted.size(); ++q) theirs[i].add(made.test.attacks[q], wanted[q]);
    }
  }
  Json lines = Json::array();
  std::vector<std::vector<std::string>> printed = {{"k", "detected %", "reference", "false alarms %", "reference"}};
  PapersPart part{head_of_results("bench papers gs-attacks", options.commit), {}, 0, {}};
  for (std::size_t i = 0; i < std::size(kNeighborCounts); ++i) {
    part.verdict += verdicts[i];
    Json line = {{"data", pool.source},
                 {"k", kNeighborCounts[i]},
                 {"method", "product_timed"},
                 {"detection_rate", ours[i].detection()},
                 {"false_alarm_rate", ours[i].false_alarms()}};
    line["reference_detection_rate"] = !options.verify ? Json(nullptr) : Json(theirs[i].detection());
    line["reference_false_alarm_rate"] = !options.verify ? Json(nullptr) : Json(theirs[i].false_alarms());
    line["checked"] = verdicts[i].checked;
    line["wrong"] = verdicts[i].wrong;
    const auto percent = [&](const char* name) {
      return line[name].is_null() ? std::string("-") : fmt::format("{:.2f}", 100 * line[name].get<double>());
    };
    printed.push_back({fmt::format("{}", kNeighborCounts[i]), percent("detection_rate"),
                       percent("reference_detection_rate"), percent("false_alarm_rate"),
                       percent("reference_false_alarm_rate")});
    lines.push_back(std::move(line));
  }
  runtime.progress->clear();
  part.json["device"] = runtime.ctx.device();
  part.json["threads"] = runtime.ctx.threads();
  note_answers(part);
  part.json["tables"] = Json::array();
  part.json["tables"].push_back({{"title", "unseen attacks among normal rows"}, {"draws", kDraws}, {"lines", lines}});
  part.text =
      fmt::format("unseen attacks among normal rows, {} draws, {}\n{}\n", kDraws, pool.source, format_table(printed));
  if (!options.output.empty()) write_text(options.output, part.json.dump(2) + "\n");
  return part;
}

}  // namespace vicinal::cli

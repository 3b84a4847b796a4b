// The float16 screen as the CUDA engine runs it, on tensor cores in software (contract clause 3): packed with bound
// columns, multiplied by every model of the hardware, compared with the threshold. Whatever the data, no row whose
// float64 key is at most the k-th may be dropped; the error of a sum may not exceed its bound; and on easy data few
// rows may survive, or the screen would be no screen. Easy data do not see a wrong bound: tight clusters do, which the
// last test makes sure of.
// fake device: -*

#include "tensor_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "data.hpp"
#include "extremes.hpp"
#include "formulas/nearest/sums_test.hpp"
#include "reference/reference.hpp"

namespace vicinal::contract {
namespace {

using core::HalfForm;
using core::HalfRow;

constexpr std::int64_t kNeighbors = 20;

struct Data {
  std::string name;
  Shape shape;
  Rows rows;
};

double tensor_normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

// Rows around a few centers, `radius` times as far from them as the centers are long; queries alike.
Data clusters(const std::string& name, const Shape& shape, int count, double radius) {
  std::mt19937_64 random(static_cast<std::uint64_t>(count) * 7 + static_cast<std::uint64_t>(1 / radius));
  std::vector<double> centers(static_cast<std::size_t>(count * shape.d));
  for (double& v : centers) v = tensor_normal(random);
  const auto make = [&](std::int64_t rows) {
    std::vector<double> values(static_cast<std::size_t>(rows * shape.d));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < shape.d; ++j) {
        values[static_cast<std::size_t>(i * shape.d + j)] =
            centers[static_cast<std::size_t>(i % count * shape.d + j)] + radius * tensor_normal(random);
      }
    }
    return values;
  };
  Data data{name, shape, {}};
  data.rows.table = make(shape.n);
  data.rows.queries = make(shape.m);
  return data;
}

// No scale is typical: values from 2^-30 to 2^10, small ones far more often.
Data scale_free(const Shape& shape) {
  std::mt19937_64 random(11);
  const auto make = [&](std::int64_t rows) {
    std::vector<double> values(static_cast<std::size_t>(rows * shape.d));
    for (double& v : values) v = tensor_normal(random) / (std::fabs(tensor_normal(random)) + 0x1p-30);
    return values;
  };
  Data data{"scale_free", shape, {}};
  data.rows.table = make(shape.n);
  data.rows.queries = make(shape.m);
  return data;
}

Data tensor_family(Family family, const Shape& shape) {
  Data data{std::string(name_of(family)), shape, make_rows(family, shape, 3)};
  if (family == Family::offset) {  // what float32 leaves of 1e6 and a little
    for (auto* values : {&data.rows.table, &data.rows.queries}) {
      for (double& v : *values) v = static_cast<double>(static_cast<float>(v));
    }
  }
  return data;
}

std::vector<Data> all_data() {
  const Shape shape{1500, 41, 9};
  return {tensor_family(Family::gaussian, shape),
          tensor_family(Family::gaussian, {900, 128, 7}),
          tensor_family(Family::gaussian, {1500, 2, 9}),
          clusters("10_clusters_5e-2", shape, 10, 0.05),
          clusters("10_clusters_1e-2", shape, 10, 0.01),
          clusters("16_clusters_1e-2", {1500, 16, 9}, 16, 1e-2),
          clusters("16_clusters_1e-3", {1500, 16, 9}, 16, 1e-3),
          clusters("16_clusters_1e-6", {1500, 16, 9}, 16, 1e-6),
          tensor_family(Family::column_scales, shape),
          tensor_family(Family::large_column, shape),
          tensor_family(Family::offset, shape),
          tensor_family(Family::outliers, shape),
          tensor_family(Family::duplicates, shape),
          tensor_family(Family::integer_ties, shape),
          tensor_family(Family::swiss_roll, shape),
          tensor_family(Family::far_queries, shape),
          tensor_family(Family::very_far_queries, {300, 17, 5}),
          tensor_family(Family::tiny_queries, {900, 17, 5}),
          tensor_family(Family::far_outlier, {900, 17, 5}),
          tensor_family(Family::row_scales, {900, 17, 5}),
          tensor_family(Family::tiny_squares, {300, 17, 5}),
          tensor_family(Family::subnormal, {300, 17, 5}),
          tensor_family(Family::constant, {300, 17, 5}),
          tensor_family(Family::images, {900, 113, 7}),
          tensor_family(Family::one_large_many_small, {400, 512, 5}),
          scale_free(shape)};
}

std::vector<TensorCore> all_cores() {
  std::vector<TensorCore> cores;
  for (const core::Accumulation sums : {core::kHopperSums, core::kAmpereSums, core::kVoltaSums}) {
    for (const bool zeros : {false, true}) cores.push_back({sums, zeros});
  }
  return cores;
}

std::string name_of_core(const TensorCore& core) {
  return "[" + std::to_string(core.sums.alignment) + " bits, " + std::to_string(core.sums.width) + " wide" +
         (core.zeros_align ? ", zeros align] " : "] ");
}

std::span<const double> row_of(const std::vector<double>& rows, std::int64_t i, std::int64_t d) {
  return {rows.data() + i * d, static_cast<std::size_t>(d)};
}

// Coordinate medians, whole where the data are whole.
std::vector<double> centre_of(const Data& data) {
  std::vector<double> centre;
  const bool whole =
      std::all_of(data.rows.table.begin(), data.rows.table.end(), [](double v) { return v == std::nearbyint(v); });
  std::vector<double> column(static_cast<std::size_t>(data.shape.n));
  for (std::int64_t j = 0; j < data.shape.d; ++j) {
    for (std::int64_t i = 0; i < data.shape.n; ++i) {
      column[static_cast<std::size_t>(i)] = data.rows.table[static_cast<std::size_t>(i * data.shape.d + j)];
    }
    std::nth_element(column.begin(), column.begin() + data.shape.n / 2, column.end());
    const double median = column[static_cast<std::size_t>(data.shape.n / 2)];
    centre.push_back(whole ? std::nearbyint(median) : median);
  }
  return centre;
}

double length_of(std::span<const double> row, std::span<const double> centre) {
  double sum = 0;
  for (std::size_t j = 0; j < row.size(); ++j) sum += (row[j] - centre[j]) * (row[j] - centre[j]);
  return std::sqrt(sum);
}

// The packed table and queries, bound columns aside.
class Packed {
 public:
  /// `radius`: of a ball that the scale is made for, although rows may lie outside; 0: of one that holds all.
  Packed(const Data& data, std::vector<double> centre, double radius = 0)
      : data_(data), centre_(std::move(centre)), shortens_(radius > 0) {
    double longest = 0;
    for (std::int64_t i = 0; i < data.shape.n; ++i) {
      longest = std::max(longest, length_of(row_of(data.rows.table, i, d()), centre_));
    }
    exponent_ = core::half_table_exponent(shortens_ ? radius : longest);
    for (std::int64_t i = 0; i < data.shape.n; ++i) {
      const auto row = row_of(data.rows.table, i, d());
      double scale = core::power_of_two(exponent_);
      if (shortens_) scale *= core::power_of_two(core::half_shortening(length_of(row, centre_) * scale));
      table_.push_back(pack(row, scale, halves_));
      typical_ += table_.back().norm / static_cast<double>(data.shape.n);
    }
  }

  [[nodiscard]] std::int64_t d() const { return data_.shape.d; }
  [[nodiscard]] std::int64_t columns() const { return core::half_columns(d()); }
  [[nodiscard]] int exponent() const { return exponent_; }
  [[nodiscard]] double typical() const { return typical_; }
  [[nodiscard]] const std::vector<HalfRow>& table() const { return table_; }

  /// The table's operands, with spare columns made by `spare(row, columns)`.
  template <class Spare>
  std::vector<Operand> operands(bool zeros_align, Spare spare) {
    std::vector<Operand> rows;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      std::uint16_t* halves = halves_.data() + static_cast<std::int64_t>(i) * columns();
      spare(table_[i], halves + columns() - core::kSpareColumns);
      rows.emplace_back(std::span<const std::uint16_t>(halves, static_cast<std::size_t>(columns())), zeros_align);
    }
    return rows;
  }

  struct Query {
    int exponent;  // of E
    HalfRow row;
    std::vector<std::uint16_t> halves;
  };
  [[nodiscard]] Query query(std::int64_t i) const {
    const auto row = row_of(data_.rows.queries, i, d());
    Query query{};
    const double length = length_of(row, centre_) * core::power_of_two(exponent_);
    const bool screened = !shortens_ || core::half_inside(length);
    query.exponent = screened ? core::half_query_exponent(length) : core::kMinHalfExponent - 1;
    if (query.exponent < core::kMinHalfExponent) return query;
    query.row = pack(row, core::power_of_two(exponent_ + query.exponent), query.halves);
    return query;
  }

 private:
  HalfRow pack(std::span<const double> row, double scale, std::vector<std::uint16_t>& halves) const {
    const std::size_t size = halves.size();
    halves.resize(size + static_cast<std::size_t>(columns()));
    return core::half_row(core::pack_half(row.data(), centre_.data(), scale, d(), halves.data() + size));
  }

  const Data& data_;
  std::vector<double> centre_;
  bool shortens_;
  int exponent_ = 0;
  double typical_ = 0;
  std::vector<HalfRow> table_;
  std::vector<std::uint16_t> halves_;
};

// The keys of each query and row, and what the k-th smallest one is among all rows and among one in eight.
struct Keys {
  std::vector<std::vector<double>> of;
  std::vector<double> kth;
  std::vector<double> sampled;

  Keys(const Data& data, Metric metric) {
    for (std::int64_t q = 0; q < data.shape.m; ++q) {
      std::vector<double> keys;
      std::vector<double> sample;
      for (std::int64_t i = 0; i < data.shape.n; ++i) {
        keys.push_back(reference::key(metric, 2, row_of(data.rows.queries, q, data.shape.d),
                                      row_of(data.rows.table, i, data.shape.d)));
        if (i % 8 == 0) sample.push_back(keys.back());
      }
      of.push_back(keys);
      for (auto* list : {&keys, &sample}) std::nth_element(list->begin(), list->begin() + kNeighbors - 1, list->end());
      kth.push_back(keys[kNeighbors - 1]);
      sampled.push_back(sample[kNeighbors - 1]);
    }
  }
};

struct Outcome {
  std::int64_t lost = 0;
  std::int64_t survivors = 0;   // with the k-th key known
  std::int64_t unscreened = 0;  // queries too far out
};

enum class Forms : std::uint8_t { chosen, triangle, far, product };

// Runs the screen: spare columns of a query from the sampled key, thresholds from that and from the k-th.
Outcome run_screen(const Data& data, const Keys& keys, Packed& packed, const TensorCore& core, Forms forms,
                   const std::function<HalfRow(HalfRow)>& table_row) {
  const double beta = core::half_beta(core.sums);
  const bool product = forms == Forms::product;
  const std::vector<Operand> rows = packed.operands(core.zeros_align, [&](const HalfRow& row, std::uint16_t* spare) {
    core::table_columns(table_row(row), product, beta, spare);
  });
  Outcome outcome;
  for (std::int64_t q = 0; q < data.shape.m; ++q) {
    const auto at = static_cast<std::size_t>(q);
    Packed::Query query = packed.query(q);
    if (!core::half_usable(query.row, query.exponent)) {
      ++outcome.unscreened;
      EXPECT_EQ(core::half_threshold(query.row, query.exponent, HalfForm::far, keys.kth[at], packed.d(),
                                     packed.exponent(), beta),
                -kInfinity);
      continue;
    }
    const double scale = core::power_of_two(packed.exponent() + query.exponent);
    const double reach = product ? 0 : core::half_reach(keys.sampled[at], packed.d(), scale);
    HalfForm form = core::half_form(reach, packed.typical() * core::power_of_two(query.exponent));
    if (forms == Forms::triangle) form = HalfForm::triangle;
    if (forms == Forms::far) form = HalfForm::far;
    if (product) form = HalfForm::product;
    core::query_columns(query.row, query.exponent, form, reach, packed.d(),
                        query.halves.data() + packed.columns() - core::kSpareColumns);
    const Operand x(query.halves, core.zeros_align);
    const auto threshold = [&](double key) {
      return core::half_threshold(query.row, query.exponent, form, key, packed.d(), packed.exponent(), beta);
    };
    const float first = threshold(keys.sampled[at]);
    const float last = threshold(keys.kth[at]);
    for (std::int64_t i = 0; i < data.shape.n; ++i) {
      const float score = multiply(core, x, rows[static_cast<std::size_t>(i)]);
      const double key = keys.of[at][static_cast<std::size_t>(i)];
      outcome.lost += key <= keys.sampled[at] && score < first ? 1 : 0;
      outcome.lost += key <= keys.kth[at] && score < last ? 1 : 0;
      outcome.survivors += score < last ? 0 : 1;
    }
  }
  return outcome;
}

Outcome run_screen(const Data& data, const Keys& keys, Packed& packed, const TensorCore& core, Forms forms) {
  return run_screen(data, keys, packed, core, forms, [](const HalfRow& row) { return row; });
}

TEST(TensorCore, LosesNoNeighbor) {
  for (const Data& data : all_data()) {
    const Keys keys(data, Metric::sqeuclidean);
    Packed packed(data, centre_of(data));
    for (const TensorCore& core : all_cores()) {
      for (const Forms forms : {Forms::chosen, Forms::triangle, Forms::far}) {
        // One form a narrower core: the models differ in beta alone.
        if (forms != Forms::chosen && core.zeros_align != (core.sums.width == 8)) continue;
        const Outcome outcome = run_screen(data, keys, packed, core, forms);
        EXPECT_EQ(outcome.lost, 0) << data.name << " d=" << data.shape.d << name_of_core(core);
        if (data.name == "gaussian" && forms == Forms::chosen) {
          EXPECT_LE(outcome.survivors, 2 * kNeighbors * data.shape.m) << name_of_core(core);
          EXPECT_EQ(outcome.unscreened, 0);
        }
      }
    }
  }
}

// Scales that leave a half, a sixteenth or all but a few of the rows far out.
TEST(TensorCore, LosesNoNeighborWhereRowsAreShortened) {
  std::int64_t screened = 0;
  for (const Data& data : all_data()) {
    const Keys keys(data, Metric::sqeuclidean);
    const std::vector<double> centre = centre_of(data);
    std::vector<double> lengths;
    for (std::int64_t i = 0; i < data.shape.n; ++i) {
      lengths.push_back(length_of(row_of(data.rows.table, i, data.shape.d), centre));
    }
    std::sort(lengths.begin(), lengths.end());
    for (const std::size_t outside : {lengths.size() / 2, lengths.size() / 16, std::size_t{3}}) {
      const double radius = lengths[lengths.size() - 1 - outside];
      if (!(radius > 0)) continue;
      Packed packed(data, centre, radius);
      for (const Forms forms : {Forms::chosen, Forms::triangle, Forms::far}) {
        const Outcome outcome = run_screen(data, keys, packed, {core::kHopperSums}, forms);
        EXPECT_EQ(outcome.lost, 0) << data.name << " d=" << data.shape.d << " outside " << outside;
        screened += data.shape.m - outcome.unscreened;
      }
    }
  }
  EXPECT_GT(screened, 0);
}

TEST(TensorCore, LosesNoLargestProduct) {
  for (const Data& data : all_data()) {
    const Keys keys(data, Metric::inner_product);
    Packed packed(data, std::vector<double>(static_cast<std::size_t>(data.shape.d), 0.0));
    for (const TensorCore& core : {TensorCore{core::kHopperSums}, TensorCore{core::kVoltaSums, true}}) {
      const Outcome outcome = run_screen(data, keys, packed, core, Forms::product);
      EXPECT_EQ(outcome.lost, 0) << data.name << " d=" << data.shape.d << name_of_core(core);
      if (data.name != "gaussian") continue;
      EXPECT_LE(outcome.survivors, 2 * kNeighbors * data.shape.m) << name_of_core(core);
    }
  }
}

// |error| / beta (kappa_x kappa_y + E h), over all pairs: without bound columns, whose share the bound names apart.
double largest_error(const Data& data, Packed& packed, const TensorCore& core) {
  const double beta = core::half_beta(core.sums);
  const std::vector<Operand> rows = packed.operands(core.zeros_align, [&](const HalfRow& row, std::uint16_t* spare) {
    core::table_columns(row, false, beta, spare);
    std::fill(spare + 2, spare + core::kSpareColumns, std::uint16_t{0});
  });
  double largest = 0;
  for (std::int64_t q = 0; q < data.shape.m; ++q) {
    Packed::Query query = packed.query(q);
    if (!core::half_usable(query.row, query.exponent)) continue;
    std::uint16_t* spare = query.halves.data() + packed.columns() - core::kSpareColumns;
    core::query_columns(query.row, query.exponent, HalfForm::triangle, 0, packed.d(), spare);
    std::fill(spare + 2, spare + core::kSpareColumns, std::uint16_t{0});
    const Operand x(query.halves, core.zeros_align);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const HalfRow& row = packed.table()[i];
      const double norm = std::max(row.rounded_sq, row.rho * row.rho) / 2;
      const double allowed = query.row.kappa * row.kappa + core::power_of_two(query.exponent) * norm * (1 + 0x1p-8) + 2;
      const auto error = static_cast<double>(multiply(core, x, rows[i]) - exact_product(x, rows[i]));
      largest = std::max(largest, std::fabs(error) / (beta * allowed));
    }
  }
  return largest;
}

TEST(TensorCore, SumsWithinTheirBound) {
  for (const TensorCore& core : all_cores()) {
    for (const Data& data : all_data()) {
      Packed packed(data, data.name == "one_large_many_small" ? std::vector<double>(512, 0.0) : centre_of(data));
      const double share = largest_error(data, packed, core);
      EXPECT_TRUE(share <= 1) << data.name << " d=" << data.shape.d << name_of_core(core) << share;
    }
  }
}

// One large early product, then 511 just below what the alignment keeps: all are lost, and the bound is nearly met.
TEST(TensorCore, ComesCloseToItsBound) {
  for (const TensorCore& core : all_cores()) {
    constexpr std::int64_t kColumns = 512;
    std::vector<std::uint16_t> x;
    std::vector<std::uint16_t> y;
    core::HalfSums of_x;
    core::HalfSums of_y;
    const int half = 14 - core.sums.alignment;
    for (std::int64_t j = 0; j < kColumns; ++j) {
      const double weight = core::half_weight(j, kColumns);
      const double small = std::ldexp(1 - 0x1p-11, half / 2);
      x.push_back(core::add_half(j == 0 ? 0x1p7 : small, weight, of_x));
      y.push_back(core::add_half(j == 0 ? 0x1p7 : std::ldexp(1.0, half - half / 2), weight, of_y));
    }
    const Operand a(x, core.zeros_align);
    const Operand b(y, core.zeros_align);
    const auto error = static_cast<double>(multiply(core, a, b) - exact_product(a, b));
    const double bound = core::half_beta(core.sums) * core::half_row(of_x).kappa * core::half_row(of_y).kappa;
    EXPECT_LE(std::fabs(error), bound) << name_of_core(core);
    EXPECT_GE(std::fabs(error), bound / 2) << name_of_core(core);
  }
}

// The rows that a device is tried with stay within the bound of what it is, and break that of what it is not quite.
TEST(TensorCore, MadeUpRowsTellTheModelsApart) {
  const auto largest_of = [](const TensorCore& core) {
    double largest = 0;
    for (const std::int64_t columns : {16, 128, 512}) {
      const core::SumsOperands x = core::sums_operands(true, 32, columns);
      const core::SumsOperands y = core::sums_operands(false, 128, columns);
      const auto operands_of = [&](const core::SumsOperands& made) {
        std::vector<Operand> operands;
        for (std::int64_t i = 0; i < made.rows; ++i) {
          operands.emplace_back(
              std::span(made.halves).subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns)),
              core.zeros_align);
        }
        return operands;
      };
      std::vector<float> sums;
      const std::vector<Operand> rows = operands_of(y);
      for (const Operand& query : operands_of(x)) {
        for (const Operand& row : rows) sums.push_back(multiply(core, query, row));
      }
      largest = std::max(largest, core::largest_sum_error(x, y, sums));
    }
    return largest;
  };
  for (const bool zeros : {false, true}) {
    const double hopper = largest_of({core::kHopperSums, zeros});
    const double ampere = largest_of({core::kAmpereSums, zeros});
    const double volta = largest_of({core::kVoltaSums, zeros});
    EXPECT_TRUE(hopper <= core::half_beta(core::kHopperSums)) << hopper;
    EXPECT_TRUE(ampere <= core::half_beta(core::kAmpereSums)) << ampere;
    EXPECT_TRUE(volta <= core::half_beta(core::kVoltaSums)) << volta;
    EXPECT_GT(hopper, core::half_beta(core::kHopperSums) / 2);
    EXPECT_GT(ampere, core::half_beta(core::kHopperSums));
    EXPECT_GT(volta, core::half_beta(core::kAmpereSums));
  }
}

// Known steps of the real thing, seen on an H200: what is added to 1 when it is small.
TEST(TensorCore, CutsWhatLies25BitsBelow) {
  const auto sum_of = [](const std::vector<double>& products) {
    std::vector<std::uint16_t> x(32, 0);
    std::vector<std::uint16_t> y(32, 0);
    for (std::size_t i = 0; i < products.size(); ++i) {
      // The first product is the accumulator of the second step.
      const std::size_t column = i == 0 ? 0 : 15 + i;
      const double root = std::exp2(std::floor(std::log2(std::fabs(products[i])) / 2));
      x[column] = core::half_bits(root, core::HalfRounding::nearest_even);
      y[column] = core::half_bits(products[i] / root, core::HalfRounding::nearest_even);
    }
    return static_cast<double>(multiply({core::kHopperSums}, Operand(x, false), Operand(y, false)));
  };
  EXPECT_EQ(sum_of({1, 0x1p-25, 0x1p-25, 0x1p-25, 0x1p-25}), 1 + 0x1p-23);
  EXPECT_EQ(sum_of({1, 0x1p-26, 0x1p-26, 0x1p-26, 0x1p-26, 0x1p-26, 0x1p-26, 0x1p-26, 0x1p-26}), 1);
  EXPECT_EQ(sum_of({1, 0x1p-24}), 1);
  EXPECT_EQ(sum_of({-1, -0x1p-24}), -1);
  EXPECT_EQ(sum_of({1, -0x1p-26}), 1);
}

// With the norm of the exact row in place of the rounded one, the natural way of writing it, neighbors are lost.
TEST(TensorCore, ExactNormsLoseNeighborsOfTightClusters) {
  const Data data = clusters("16_clusters_1e-2", {1500, 16, 9}, 16, 1e-2);
  const Keys keys(data, Metric::sqeuclidean);
  Packed packed(data, centre_of(data));
  const Outcome outcome = run_screen(data, keys, packed, {core::kHopperSums}, Forms::triangle, [](HalfRow row) {
    row.rounded_sq = row.exact_sq;
    return row;
  });
  EXPECT_GT(outcome.lost, 0);
}

// A row that the scale does not fit, and a query for which nothing is known, survive.
TEST(TensorCore, KeepsWhatItCannotJudge) {
  constexpr std::int64_t kColumns = 16;
  std::vector<std::uint16_t> table(kColumns, 0);
  std::vector<std::uint16_t> query(kColumns, 0);
  const std::vector<double> centre(11, 0.0);
  const std::vector<double> near(11, 1.0);
  const std::vector<double> far(11, 1e9);
  const double beta = core::half_beta(core::kHopperSums);
  const HalfRow long_row = core::half_row(core::pack_half(far.data(), centre.data(), 1, 11, table.data()));
  core::table_columns(long_row, false, beta, table.data() + 11);
  const HalfRow x = core::half_row(core::pack_half(near.data(), centre.data(), 1, 11, query.data()));
  core::query_columns(x, 0, HalfForm::triangle, 0, 11, query.data() + 11);
  const float threshold = core::half_threshold(x, 0, HalfForm::triangle, 0, 11, 0, beta);
  EXPECT_TRUE(std::isfinite(threshold));
  EXPECT_FALSE(multiply({core::kHopperSums}, Operand(query, false), Operand(table, false)) < threshold);
  EXPECT_EQ(core::half_threshold(x, 0, HalfForm::triangle, kInfinity, 11, 0, beta), -kInfinity);
  EXPECT_EQ(core::half_query_exponent(0x1p31), core::kMinHalfExponent - 1);
  EXPECT_EQ(core::half_query_exponent(0x1.8p13), 0);
  EXPECT_EQ(core::half_query_exponent(0x1.8p14), -1);
  EXPECT_EQ(core::half_table_exponent(0x1.8p20), -7);
}

}  // namespace
}  // namespace vicinal::contract

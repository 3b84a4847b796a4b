// Krylov methods on a device beside the CPU (contract clause 17), and sparse products by every method beside sums in
// long double: random, empty and very long rows, sizes beside a warp's and a block's, and what is refused.
// fake device, sanitized: SpmvRefusal.*
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "device_check.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

struct Sparse {
  std::int64_t cols = 0;
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> index;
  std::vector<double> values;

  [[nodiscard]] SparseView view() const { return {cols, offsets, index, values}; }
};

// Row i has length(i) entries; numbers by a small generator of its own.
Sparse sparse(std::int64_t rows, std::int64_t cols, const std::function<std::int64_t(std::int64_t)>& length) {
  Sparse made;
  made.cols = cols;
  std::uint64_t state = 88172645463325252ULL;
  const auto next = [&] {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return state;
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < length(i); ++j) {
      made.index.push_back(static_cast<std::int32_t>(next() % static_cast<std::uint64_t>(cols)));
      made.values.push_back(static_cast<double>(next() % 2000) / 1000 - 1);
    }
    made.offsets.push_back(static_cast<std::int64_t>(made.index.size()));
  }
  return made;
}

TEST(Spmv, EqualsSumsInLongDouble) {
  const auto regular = [](std::int64_t) { return std::int64_t{10}; };
  const auto ragged = [](std::int64_t i) { return i % 7 == 3 ? std::int64_t{0} : (i * 37) % 71; };
  const auto hub = [](std::int64_t i) { return i == 5 ? std::int64_t{3001} : std::int64_t{1}; };
  std::uint64_t turn = 0;
  for (const Sparse& a :
       {sparse(1, 1, regular), sparse(33, 40, regular), sparse(257, 100, ragged), sparse(2049, 31, ragged),
        sparse(64, 5000, hub), sparse(3, 2, [](std::int64_t) { return 0; })}) {
    std::vector<double> x;
    for (std::int64_t i = 0; i < a.cols; ++i) x.push_back(std::sin(static_cast<double>(i + 1)));
    for (const Context& ctx : contexts(++turn)) {
      const bool device = ctx.device() != "cpu";
      for (const SpmvMethod method :
           {SpmvMethod::automatic, SpmvMethod::rows, SpmvMethod::block_row, SpmvMethod::warp_row,
            SpmvMethod::padded_row, SpmvMethod::sliced_rows, SpmvMethod::eight}) {
        if (!device && method > SpmvMethod::rows) continue;
        const Spmv found = spmv(ctx, a.view(), x, method, 2);
        const std::string name = std::string(name_of(method)) + " on " + ctx.device();
        ASSERT_EQ(found.product.size(), a.offsets.size() - 1) << name;
        EXPECT_GT(found.bytes, 0U);
        for (std::size_t i = 0; i + 1 < a.offsets.size(); ++i) {
          long double sum = 0;
          long double magnitudes = 0;
          for (std::int64_t e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
            const long double term = static_cast<long double>(a.values[e]) * x[a.index[e]];
            sum += term;
            magnitudes += std::abs(term);
          }
          // A product and an addition an entry, each rounded.
          const auto entries = static_cast<long double>(a.offsets[i + 1] - a.offsets[i] + 1);
          EXPECT_TRUE(std::abs(found.product[i] - sum) <= entries * 0x1p-52L * magnitudes) << name << ", row " << i;
        }
        EXPECT_TRUE(same_bits(found.product, spmv(ctx, a.view(), x, method).product)) << name;
      }
    }
  }
}

TEST(SpmvRefusal, OfSizesColumnsAndMethods) {
  const Context ctx = Context::cpu({.threads = 2});
  const Sparse good = sparse(20, 10, [](std::int64_t) { return 4; });
  const std::vector<double> x(10, 1.0);
  const auto refused = [&](const Sparse& a, const std::vector<double>& from, SpmvMethod method, std::int64_t repeat,
                           const std::string& part) {
    try {
      spmv(ctx, a.view(), from, method, repeat);
      FAIL() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const auto plain = SpmvMethod::automatic;
  refused(good, std::vector<double>(9, 1.0), plain, 1, "x: has 9");
  refused(good, x, plain, 0, "repeat: is 0");
  refused(good, x, SpmvMethod::warp_row, 1, "warp_row needs a CUDA device");
  Sparse bad = good;
  bad.index[7] = 10;
  refused(bad, x, plain, 1, "index: entry 7 is in column 10");
  bad.index[7] = -1;
  refused(bad, x, plain, 1, "index: entry 7");
  bad = good;
  bad.offsets[3] = 100;
  refused(bad, x, plain, 1, "offsets: row 3 ends before it begins");
  bad = good;
  bad.offsets.back() += 1;
  refused(bad, x, plain, 1, "values: ");
  bad = good;
  bad.offsets[0] = 1;
  refused(bad, x, plain, 1, "offsets: do not begin with 0");
  bad.offsets.clear();
  refused(bad, x, plain, 1, "offsets: ");
  EXPECT_THROW(spmv_method_from("best"), Error);
  EXPECT_EQ(spmv_method_from("sliced_rows"), SpmvMethod::sliced_rows);
}

class KrylovOnDevice : public DeviceTest {};

TEST_F(KrylovOnDevice, FindsWhatTheCpuFinds) {
  struct Case {
    Family family;
    std::int64_t n;
    std::int64_t d;
    LleOptions options;
  };
  const Case cases[] = {{Family::gaussian, 1301, 40, {.k = 12, .dim = 3}},
                        {Family::gaussian, 700, 15, {.k = 12, .dim = 6}},  // blocks of 16
                        {Family::gaussian, 40, 9, {.k = 6}},               // the whole space
                        {Family::duplicates, 400, 5, {.k = 8}},
                        {Family::gaussian, 500, 9, {.k = 11, .variant = LleVariant::modified}},
                        {Family::gaussian, 500, 4, {.k = 11, .variant = LleVariant::ltsa}}};
  for (const Case& one : cases) {
    const Rows rows = make_rows(one.family, {one.n, one.d, 1}, 3);
    const TableView table(rows.table.data(), one.n, one.d);
    for (const LleSolver solver : {LleSolver::lanczos, LleSolver::arnoldi}) {
      if (solver == LleSolver::arnoldi && one.n != 40) continue;  // restarted, it needs a good condition
      LleOptions options = one.options;
      options.solver = solver;
      const Lle host = lle(cpu(), table, options);
      const Lle device = lle(cuda(), table, options);
      const Lle again = lle(cuda(), table, options);
      ASSERT_EQ(host.pieces.size(), device.pieces.size());
      EXPECT_TRUE(same_bits(device.embedding, again.embedding)) << one.n;
      for (std::size_t p = 0; p < host.pieces.size(); ++p) {
        const LlePiece& piece = device.pieces[p];
        for (std::int64_t c = 0; c < options.dim; ++c) {
          const double sigma = host.pieces[p].singular_values[c];
          const double least = 1e-14 * std::sqrt(piece.norm);
          EXPECT_TRUE(std::abs(piece.singular_values[c] - sigma) <= std::max(1e-6 * sigma, least)) << one.n;
          EXPECT_TRUE(piece.residuals[c] <= 1e-14 * piece.norm) << one.n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace vicinal::contract

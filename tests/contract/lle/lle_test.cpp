// Locally linear embedding against the reference (contract clause 17): every variant, every solver, several shapes;
// its promises of bits, signs, pieces and counts; and what it refuses.
// fake device: LleOnDevice.*
// fake device, sanitized: LleOnDevice.*AnSCurve:LleOnDevice.*Pieces*:LleOnDevice.Is*:LleOnDevice.RefusesAsTheHost*
#include "vicinal/lle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "contexts.hpp"
#include "data.hpp"
#include "device_memory.hpp"
#include "reference/lle.hpp"
#include "refused.hpp"
#include "vicinal/vicinal.hpp"

namespace vicinal::contract {
namespace {

constexpr double kEpsilon = 0x1p-52;
const LleVariant kVariants[] = {LleVariant::standard, LleVariant::modified, LleVariant::hessian,
                                LleVariant::hessian_sklearn, LleVariant::ltsa};

struct Points {
  std::vector<double> rows;
  std::int64_t d = 0;
  std::string name;
  [[nodiscard]] std::int64_t n() const { return static_cast<std::int64_t>(rows.size()) / d; }
  [[nodiscard]] TableView view() const { return {rows.data(), n(), d}; }
};

Points shape(vicinal::Shape which, std::int64_t n, double noise = 0) {
  Generated made = generate(Context::cpu(), {.shape = which, .rows = n, .noise = noise, .seed = 7});
  return {std::move(made.points), made.cols, std::string(name_of(which)) + (noise > 0 ? " with noise" : "")};
}

Points family(Family which, std::int64_t n, std::int64_t d) {
  Rows made = make_rows(which, {n, d, 1}, 3);
  return {std::move(made.table), d, std::string(name_of(which))};
}

Context plain(int threads = 2) {
  return Context::cpu({.threads = threads});
}

// What any embedding must be: columns of length one within a piece, orthogonal to the constant, signs by the largest.
void check_columns(const Lle& found, const std::string& name) {
  const std::int64_t dim = found.options.dim;
  for (std::size_t p = 0; p < found.pieces.size(); ++p) {
    for (std::int64_t c = 0; c < dim; ++c) {
      double sum = 0;
      double square = 0;
      double largest = 0;
      const auto left_out = [&](std::size_t i) {
        return found.piece[i] != static_cast<std::int64_t>(p) ||
               std::binary_search(found.placed.begin(), found.placed.end(), static_cast<std::int64_t>(i));
      };
      for (std::size_t i = 0; i < found.piece.size(); ++i) {
        if (left_out(i)) continue;
        const double x = found.embedding[i * dim + c];
        sum += x;
        square += x * x;
        largest = std::max(largest, std::abs(x));
      }
      EXPECT_TRUE(std::abs(sum) <= 1e-12) << name << ": " << sum;
      EXPECT_TRUE(std::abs(square - 1) <= 1e-12) << name << ": " << square;
      for (std::size_t i = 0; i < found.piece.size(); ++i) {
        if (left_out(i)) continue;
        const double x = found.embedding[i * dim + c];
        if (std::abs(x) < (1 - 1e-6) * largest) continue;
        EXPECT_GT(x, 0) << name;
        break;
      }
    }
    EXPECT_TRUE(std::is_sorted(found.pieces[p].singular_values.begin(), found.pieces[p].singular_values.end())) << name;
  }
}

// Singular values and subspaces of a table whose graph is one piece: by how much they may differ is the contract's.
void check_against(const reference::LleProblem& truth, const Lle& found, const std::string& name) {
  ASSERT_EQ(found.pieces.size(), 1U) << name;
  check_columns(found, name);
  const LlePiece& piece = found.pieces[0];
  const std::int64_t n = truth.n;
  const auto norm = static_cast<double>(truth.values.back());
  // values[0] is the constant vector's.
  for (std::int64_t c = 0; c < found.options.dim; ++c) {
    const auto lambda = static_cast<double>(truth.values[c + 1]);
    const double sigma = std::sqrt(std::max(0.0, lambda));
    EXPECT_TRUE(std::abs(piece.singular_values[c] - sigma) <= std::max(1e-6 * sigma, 1e-14 * std::sqrt(norm)))
        << name << ": sigma " << piece.singular_values[c] << " instead of " << sigma;
    EXPECT_TRUE(piece.residuals[c] <= 1e-14 * norm) << name << ": residual " << piece.residuals[c];
    // The part of the vector that is outside of the cluster that its value belongs to.
    double outside = 0;
    double gap = norm;
    for (std::int64_t j = 1; j < n; ++j) {
      const double distance = std::abs(static_cast<double>(truth.values[j]) - lambda);
      if (distance <= 1e-3 * lambda + 1e-13 * norm) continue;
      gap = std::min(gap, distance);
      reference::Real dot = 0;
      for (std::int64_t i = 0; i < n; ++i) dot += truth.vectors[j * n + i] * found.embedding[i * found.options.dim + c];
      outside += static_cast<double>(dot * dot);
    }
    const double sine = std::sqrt(outside);
    EXPECT_TRUE(sine <= std::max(1e-6, 10 * kEpsilon * norm / gap)) << name << ": angle " << sine << ", gap " << gap;
  }
}

void check_every_variant(const Points& points, std::int64_t k, std::int64_t dim) {
  const Context ctx = plain();
  const NeighborGraph graph = knn(ctx, points.view(), {.k = k});
  std::uint64_t turn = 0;
  for (const LleVariant variant : kVariants) {
    LleOptions options{.k = k, .dim = dim, .variant = variant};
    const auto truth = reference::lle_problem(reference::lle_matrix(points.rows, points.d, graph.ids, options));
    for (const LleSolver solver : {LleSolver::dense, LleSolver::direct, LleSolver::lanczos, LleSolver::arnoldi}) {
      // One vector at a time sees one of equal eigenvalues, which other variants have many of.
      if (solver == LleSolver::arnoldi && variant != LleVariant::standard) continue;
      options.solver = solver;
      const std::string name = points.name + ", " + std::string(name_of(variant)) + ", " + std::string(name_of(solver));
      const auto made = contexts(++turn);
      const Lle found = lle(made[turn % made.size()], points.view(), options);
      check_against(truth, found, name);
      EXPECT_EQ(found.pieces[0].solver, solver);
      if (solver != LleSolver::direct) continue;
      // Where M has more zeros than are asked for, no sign can tell the last from the next.
      const bool told = truth.values[dim + 1] - truth.values[dim] > 1e-13L * truth.values.back();
      const std::int64_t counted = found.pieces[0].counted;
      EXPECT_TRUE(counted == dim || (!told && counted == -1)) << name << ": " << counted;
    }
  }
}

TEST(Lle, EqualsTheReferenceOnASwissRoll) {
  check_every_variant(shape(vicinal::Shape::swiss_roll, 90), 10, 2);
}
TEST(Lle, EqualsTheReferenceOnAnSCurve) {
  check_every_variant(shape(vicinal::Shape::s_curve, 71), 9, 1);
}
TEST(Lle, EqualsTheReferenceWithNoise) {
  check_every_variant(shape(vicinal::Shape::swiss_roll, 75, 0.5), 12, 2);
}
TEST(Lle, EqualsTheReferenceInManyColumns) {
  check_every_variant(family(Family::gaussian, 67, 23), 11, 3);
}
TEST(Lle, EqualsTheReferenceFarFromTheOrigin) {
  Points points = shape(vicinal::Shape::swiss_roll, 70);
  for (double& x : points.rows) x = x * 0x1p20 + 0x1p40;
  points.name = "offset";
  check_every_variant(points, 10, 2);
}
TEST(Lle, EqualsTheReferenceAtTinyAndHugeScale) {
  for (const double scale : {0x1p-120, 0x1p120}) {
    Points points = shape(vicinal::Shape::s_curve, 66);
    for (double& x : points.rows) x *= scale;
    check_every_variant(points, 8, 2);
  }
}

// One set of bits for every thread count, of each instruction set; at a size where work is shared in all its ways.
/// Blocks of rows are every instruction set's; threads are ThreadSanitizer's alone.
std::vector<Isa> isas_of_blocks() {
  std::vector<Isa> all = available_isas();
  if (kFewestThreads > 1) all = {all.back()};
  return all;
}

TEST(Lle, GivesTheSameBitsOnEveryThreadCount) {
  const Points points = shape(vicinal::Shape::swiss_roll, 9001);
  for (const Isa isa : isas_of_blocks()) {
    const Lle once = lle(Context::cpu({.threads = 1, .isa = isa}), points.view(), {});
    check_columns(once, points.name);
    EXPECT_EQ(once.pieces[0].counted, 2);
    for (const int threads : sanitized<std::vector<int>>({2, 3, 7}, {3})) {
      const Lle again = lle(Context::cpu({.threads = threads, .isa = isa}), points.view(), {});
      EXPECT_TRUE(same_bits(once.embedding, again.embedding)) << threads;
      EXPECT_TRUE(same_bits(once.pieces[0].singular_values, again.pieces[0].singular_values)) << threads;
    }
  }
}

// Eigenvalues close together: each step of the iteration gains little, which is no sign that it has arrived.
TEST(Lle, TheIterationGoesOnWhereItIsSlow) {
  const Points points = family(Family::gaussian, 331, 70);
  for (const LleVariant variant : {LleVariant::standard, LleVariant::modified}) {
    const Lle found = lle(plain(), points.view(), {.variant = variant, .solver = LleSolver::direct});
    const LlePiece& piece = found.pieces[0];
    for (const double residual : piece.residuals) {
      EXPECT_TRUE(residual <= 1e-14 * piece.norm) << name_of(variant) << ": " << residual << " of " << piece.norm;
    }
  }
}

TEST(Lle, DirectAndDenseAgreeOnRealSizes) {
  const Points points = shape(vicinal::Shape::swiss_roll, 400);
  const Lle dense = lle(plain(), points.view(), {.solver = LleSolver::dense});
  const Lle direct = lle(plain(), points.view(), {.solver = LleSolver::direct});
  for (int c = 0; c < 2; ++c) {
    const double sigma = dense.pieces[0].singular_values[c];
    EXPECT_TRUE(std::abs(direct.pieces[0].singular_values[c] - sigma) <= 1e-6 * sigma);
    EXPECT_TRUE(std::abs(direct.pieces[0].next_singular_value - dense.pieces[0].next_singular_value) <=
                1e-2 * dense.pieces[0].next_singular_value);
  }
  for (std::size_t i = 0; i < dense.embedding.size(); ++i) {
    EXPECT_TRUE(std::abs(dense.embedding[i] - direct.embedding[i]) <= 1e-6) << i;
  }
}

// Where no basis spans all there is: restarts, filters and several blocks take part.
TEST(Lle, LanczosAndDenseAgreeOnRealSizes) {
  struct Case {
    Points points;
    LleOptions options;
  };
  const Case cases[] = {{shape(vicinal::Shape::swiss_roll, 260), {}},
                        {shape(vicinal::Shape::swiss_roll, 250), {.k = 10, .variant = LleVariant::modified}},
                        {shape(vicinal::Shape::s_curve, 240), {.variant = LleVariant::ltsa}},
                        {family(Family::gaussian, 261, 40), {.k = 12, .dim = 5}},
                        {shape(vicinal::Shape::s_curve, 240), {.variant = LleVariant::hessian}}};
  for (const Case& one : std::span(cases).first(sanitized<std::size_t>(std::size(cases), 2))) {
    LleOptions options = one.options;
    options.solver = LleSolver::dense;
    const Lle truth = lle(plain(), one.points.view(), options);
    options.solver = LleSolver::lanczos;
    const Lle found = lle(plain(3), one.points.view(), options);
    const std::string& name = one.points.name;
    check_columns(found, name);
    const LlePiece& piece = found.pieces[0];
    EXPECT_EQ(piece.solver, LleSolver::lanczos) << name;
    EXPECT_EQ(piece.counted, -1) << name;
    for (std::int64_t c = 0; c < options.dim; ++c) {
      const double sigma = truth.pieces[0].singular_values[c];
      const double least = 1e-14 * std::sqrt(piece.norm);
      EXPECT_TRUE(std::abs(piece.singular_values[c] - sigma) <= std::max(1e-6 * sigma, least))
          << name << ", " << c << ": " << piece.singular_values[c] << " instead of " << sigma;
      EXPECT_TRUE(piece.residuals[c] <= 1e-14 * piece.norm) << name << ", " << c;
    }
    for (std::size_t i = 0; i < truth.embedding.size(); ++i) {
      ASSERT_TRUE(std::abs(truth.embedding[i] - found.embedding[i]) <= 1e-6) << name << ", " << i;
    }
  }
}

// The pairs of a circle: sine and cosine have the same eigenvalue, and one column cuts a pair.
TEST(Lle, TellsAClusterAtTheCutFromSkippedEigenvalues) {
  Points points{{}, 2, "a circle"};
  for (int i = 0; i < 400; ++i) {
    const double angle = i * 0.015707963267948967;
    points.rows.insert(points.rows.end(), {std::cos(angle), std::sin(angle)});
  }
  const auto piece_of = [&](const LleOptions& options) { return lle(plain(), points.view(), options).pieces[0]; };
  const LlePiece cut = piece_of({.k = 6, .dim = 1, .solver = LleSolver::direct});
  EXPECT_EQ(cut.count, LleCount::clustered) << name_of(cut.count);
  const LlePiece whole = piece_of({.k = 6, .dim = 2, .solver = LleSolver::direct});
  EXPECT_EQ(whole.count, LleCount::complete) << name_of(whole.count);
  EXPECT_EQ(whole.counted, 2);
  EXPECT_EQ(piece_of({.k = 6, .solver = LleSolver::direct, .certify = false}).count, LleCount::not_asked);
  EXPECT_EQ(piece_of({.k = 6, .solver = LleSolver::dense}).count, LleCount::by_solver);
}

// Masses of copies make filters of high degree, of which one basis alone would take more products than are allowed.
TEST(Lle, LanczosNeverTakesMoreProductsThanAllowed) {
  Points points = family(Family::gaussian, 700, 3);
  for (int copies = 0; copies < 700; ++copies) points.rows.insert(points.rows.end(), {0.1, 0.2, 0.3});
  for (const std::int64_t most : {10, 300, 3000}) {
    try {
      lle(plain(), points.view(),
          {.k = 8, .variant = LleVariant::modified, .solver = LleSolver::lanczos, .max_steps = most});
      ADD_FAILURE() << "found with " << most << " products";
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_EQ(said.find("max_steps: " + std::to_string(most) + " products with M are too few, "), 0U) << said;
      const std::int64_t taken = std::stoll(said.substr(said.find("too few, ") + 9));
      EXPECT_LE(taken, most) << said;
    }
  }
}

TEST(Lle, KrylovGivesTheSameBitsOnEveryThreadCount) {
  const Points points = family(Family::gaussian, 4107, 60);
  for (const Isa isa : isas_of_blocks()) {
    LleOptions options{.k = 8, .solver = LleSolver::lanczos};
    const Lle once = lle(Context::cpu({.threads = 1, .isa = isa}), points.view(), options);
    for (const int threads : sanitized<std::vector<int>>({3, 7}, {3})) {
      const Lle again = lle(Context::cpu({.threads = threads, .isa = isa}), points.view(), options);
      EXPECT_TRUE(same_bits(once.embedding, again.embedding)) << threads;
      EXPECT_TRUE(same_bits(once.pieces[0].singular_values, again.pieces[0].singular_values)) << threads;
      EXPECT_EQ(once.pieces[0].iterations, again.pieces[0].iterations) << threads;
    }
  }
}

TEST(Lle, AutomaticTakesProductsWhereTheFactorDoesNotFit) {
  const std::int64_t rows = sanitized(3000, 1200);
  const Points points = family(Family::gaussian, rows, 15);
  const Lle direct = lle(plain(), points.view(), {.k = 10, .solver = LleSolver::direct});
  const Lle lanczos = lle(plain(), points.view(), {.k = 10, .solver = LleSolver::lanczos});
  ASSERT_LT(lanczos.plan.memory, direct.plan.memory);
  const std::uint64_t between = (lanczos.plan.memory + direct.plan.memory) / 2;
  const Context tight = Context::cpu({.threads = 2, .memory_limit = between});
  const Lle found = lle(tight, points.view(), {.k = 10});
  EXPECT_EQ(found.pieces[0].solver, LleSolver::lanczos);
  EXPECT_TRUE(same_bits(found.embedding, lanczos.embedding));
  EXPECT_NE(found.plan.reason.find("lanczos"), std::string::npos) << found.plan.reason;
  EXPECT_NE(found.warning.find("no room for the factor of a piece of " + std::to_string(rows) + " rows"),
            std::string::npos)
      << found.warning;
  const LlePlan plan = plan_lle(tight, points.view(), {.k = 10});
  EXPECT_EQ(plan.solver, LleSolver::lanczos);
  EXPECT_NE(plan.warning.find("no room for the solver direct"), std::string::npos) << plan.warning;
  EXPECT_EQ(plan.memory, plan_lle(plain(), points.view(), {.k = 10}).memory);
  EXPECT_EQ(lle(plain(), points.view(), {.k = 10}).pieces[0].solver, LleSolver::direct);
}

// The first number that a run is refused with is the plan's, and with that much it runs as it does with more.
TEST(Lle, RunsAsPlannedWithTheMemoryThatARefusalNames) {
  for (const Points& points : {family(Family::gaussian, sanitized(3000, 1200), 15),
                               shape(vicinal::Shape::swiss_roll, sanitized(15000, 5000))}) {
    const LlePlan plan = plan_lle(plain(), points.view(), {.k = 10});
    EXPECT_EQ(plan.solver, LleSolver::direct);
    EXPECT_EQ(plan.warning, "");
    EXPECT_GT(plan.expected_seconds, 0);
    EXPECT_NE(plan.reason.find("then direct on the host for about "), std::string::npos) << plan.reason;
    refused([&] { lle(Context::cpu({.threads = 2, .memory_limit = 100'000}), points.view(), {.k = 10}); },
            ErrorCode::over_memory, "(" + std::to_string(plan.memory) + " bytes)");
    const Context exactly = Context::cpu({.threads = 2, .memory_limit = plan.memory});
    const Lle found = lle(exactly, points.view(), {.k = 10});
    EXPECT_EQ(found.pieces[0].solver, LleSolver::direct) << points.name;
    EXPECT_EQ(found.warning, "");
    EXPECT_LE(found.plan.memory, plan.memory);
    EXPECT_LE(plan.memory, 2 * found.plan.memory) << points.name;
    EXPECT_TRUE(same_bits(found.embedding, lle(plain(), points.view(), {.k = 10}).embedding));
  }
}

TEST(Lle, EmbedsPiecesApartOrRefusesThem) {
  Points points = shape(vicinal::Shape::s_curve, 300);
  for (std::int64_t i = 200; i < 300; ++i) points.rows[i * 3] += 100;  // the second piece
  const LleOptions options{.k = 10, .solver = LleSolver::direct};
  const Lle found = lle(plain(), points.view(), options);
  ASSERT_EQ(found.pieces.size(), 2U);
  EXPECT_EQ(found.pieces[0].rows, 200);
  EXPECT_EQ(found.pieces[1].rows, 100);
  check_columns(found, "two pieces");
  for (std::int64_t i = 0; i < 300; ++i) EXPECT_EQ(found.piece[i], i < 200 ? 0 : 1);
  const Points alone{{points.rows.begin() + 600, points.rows.end()}, 3, "alone"};
  const Lle one = lle(plain(), alone.view(), options);
  for (std::size_t i = 0; i < one.embedding.size(); ++i) {
    EXPECT_TRUE(std::abs(one.embedding[i] - found.embedding[400 + i]) <= 1e-6);
  }
  LleOptions refusing = options;
  refusing.pieces = LlePieces::refuse;
  try {
    lle(plain(), points.view(), refusing);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_data);
    EXPECT_NE(std::string(error.what()).find("in 2 pieces"), std::string::npos) << error.what();
  }
}

// Clusters whose rows have their neighbors among themselves, and rows between them that have neighbors in two: one
// component of several closed classes, for each of which I - W has a null vector.
Points clusters_with_strays() {
  Points points{{}, 2, "clusters with strays"};
  std::uint64_t state = 5;
  const auto next = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  for (int cluster = 0; cluster < 4; ++cluster) {
    for (int i = 0; i < 25; ++i) points.rows.insert(points.rows.end(), {10.0 * cluster + next(), next()});
    // The last cluster has no stray that leads to others; the second stray leads to the first one.
    if (cluster < 2) points.rows.insert(points.rows.end(), {10.0 * cluster + 5.5, 0.5});
    if (cluster == 0) points.rows.insert(points.rows.end(), {5.5, 9.5, 5.5, 18.5});
  }
  return points;
}

void check_closed_classes(const Context& ctx, LleSolver solver) {
  const Points points = clusters_with_strays();
  const NeighborGraph graph = knn(plain(), points.view(), {.k = 8});
  const auto truth = reference::lle_pieces(graph.ids, 8);
  ASSERT_GT(std::count_if(truth.round.begin(), truth.round.end(), [](auto round) { return round > 0; }), 2);
  const Lle found = lle(ctx, points.view(), {.k = 8, .solver = solver});
  EXPECT_EQ(found.piece, truth.piece);
  check_columns(found, "closed classes");
  std::vector<std::int64_t> placed;
  for (std::int64_t i = 0; i < points.n(); ++i) {
    if (truth.round[i] > 0) placed.push_back(i);
  }
  EXPECT_EQ(found.placed, placed);
  ASSERT_EQ(found.pieces.size(), 4U);
  for (std::int64_t p = 0; p < 4; ++p) {
    const LlePiece& piece = found.pieces[p];
    EXPECT_EQ(piece.rows, std::count(truth.piece.begin(), truth.piece.end(), p));
    EXPECT_EQ(piece.closed_classes, p < 3 ? 3 : 1);
    EXPECT_EQ(piece.component, p < 3 ? 0 : 1);
    EXPECT_EQ(piece.zeros, 0) << p;
    // The rows that are embedded, as a table of their own, have the same neighbors.
    Points alone{{}, 2, "alone"};
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < points.n(); ++i) {
      if (truth.piece[i] != p || truth.round[i] > 0) continue;
      rows.push_back(i);
      alone.rows.insert(alone.rows.end(), {points.rows[i * 2], points.rows[i * 2 + 1]});
    }
    EXPECT_EQ(piece.placed, piece.rows - std::ssize(rows));
    const Lle one = lle(plain(), alone.view(), {.k = 8, .solver = LleSolver::dense});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (int c = 0; c < 2; ++c) {
        EXPECT_TRUE(std::abs(one.embedding[i * 2 + c] - found.embedding[rows[i] * 2 + c]) <= 1e-6) << p << ", " << i;
      }
    }
  }
  for (const std::int64_t i : placed) {
    std::vector<std::int64_t> kept;
    std::vector<double> near;
    for (const std::int64_t id : graph.ids_of(i)) {
      if (truth.piece[id] != truth.piece[i] || truth.round[id] >= truth.round[i]) continue;
      kept.push_back(id);
      near.insert(near.end(), {points.rows[id * 2], points.rows[id * 2 + 1]});
    }
    const auto weights = reference::lle_weights({&points.rows[i * 2], 2}, near, std::ssize(kept), 1e-3);
    for (int c = 0; c < 2; ++c) {
      reference::Real sum = 0;
      reference::Real room = 0;
      for (std::size_t j = 0; j < kept.size(); ++j) {
        sum += weights[j] * found.embedding[kept[j] * 2 + c];
        room += std::abs(weights[j]);
      }
      EXPECT_TRUE(std::abs(static_cast<double>(sum) - found.embedding[i * 2 + c]) <= 1e-9 * static_cast<double>(room));
    }
  }
}

TEST(Lle, EmbedsClosedClassesApart) {
  std::uint64_t turn = 0;
  for (const LleSolver solver : {LleSolver::automatic, LleSolver::direct, LleSolver::lanczos}) {
    for (const Context& ctx : contexts(++turn)) check_closed_classes(ctx, solver);
  }
}

TEST(Lle, RefusesClosedClassesByChoice) {
  const Points points = clusters_with_strays();
  refused([&] { lle(plain(), points.view(), {.k = 8, .pieces = LlePieces::refuse}); }, ErrorCode::bad_data,
          "in 4 pieces, which are closed classes of its 2 connected components");
}

TEST(Lle, OfAGraphIsThatOfTheTable) {
  const Points points = shape(vicinal::Shape::swiss_roll, 200);
  const NeighborGraph graph = knn(plain(), points.view(), {.k = 9});
  const Lle by_graph = lle(plain(), points.view(), graph, {});
  const Lle by_table = lle(plain(), points.view(), {.k = 9});
  EXPECT_TRUE(same_bits(by_graph.embedding, by_table.embedding));
}

TEST(Lle, TransformIsTheWeightedSumOfTheNeighbors) {
  const Points points = shape(vicinal::Shape::swiss_roll, 250);
  const Points others = shape(vicinal::Shape::swiss_roll, 300, 0.1);
  const Lle fitted = lle(plain(), points.view(), {.k = 8});
  const Index index(plain(), points.view());
  const std::vector<double> found = transform(plain(3), index, fitted, others.view());
  const NeighborGraph graph = knn(plain(), index, others.view(), {.k = 8});
  for (std::int64_t q = 0; q < others.n(); ++q) {
    std::vector<double> near;
    for (const std::int64_t id : graph.ids_of(q))
      near.insert(near.end(), &points.rows[id * 3], &points.rows[id * 3] + 3);
    const auto weights = reference::lle_weights({&others.rows[q * 3], 3}, near, 8, fitted.options.reg);
    for (int c = 0; c < 2; ++c) {
      reference::Real sum = 0;
      reference::Real room = 0;
      for (int j = 0; j < 8; ++j) {
        sum += weights[j] * fitted.embedding[graph.ids_of(q)[j] * 2 + c];
        room += std::abs(weights[j]);
      }
      // A Gram's condition is at most about 1 / reg, and each entry of it is off by a few roundings.
      EXPECT_TRUE(std::abs(static_cast<double>(sum) - found[q * 2 + c]) <= 1e-9 * static_cast<double>(room)) << q;
    }
  }
}

TEST(Lle, DuplicatesAndConstantTablesAreEmbedded) {
  for (const Family which : {Family::duplicates, Family::constant, Family::mostly_duplicates, Family::on_a_line,
                             Family::grid, Family::far_outlier, Family::subnormal, Family::constant_column}) {
    const Points points = family(which, 180, 3);
    for (const LleVariant variant : kVariants) {
      for (const LleSolver solver : {LleSolver::automatic, LleSolver::lanczos}) {
        const std::string name =
            points.name + ", " + std::string(name_of(variant)) + ", " + std::string(name_of(solver));
        const Lle found = lle(plain(), points.view(), {.k = 8, .variant = variant, .solver = solver});
        check_columns(found, name);
        for (const double x : found.embedding) ASSERT_TRUE(std::isfinite(x)) << name;
      }
    }
  }
}

// Where vectors all but depend on those before them, what rounding left of their means has grown.
TEST(Lle, VectorsOfALineAreOrthogonalToTheConstant) {
  Points points{{}, 3, "a line"};
  for (int i = 0; i < 180; ++i) points.rows.insert(points.rows.end(), {1.0 * i, 2.0 * i, 3.0 * i});
  for (const LleVariant variant : kVariants) {
    check_columns(lle(plain(), points.view(), {.k = 8, .variant = variant}), std::string(name_of(variant)));
  }
}

// One row a million away: its neighbors are the cloud's, but it is nobody's. And two clumps of copies, which are
// pieces.
TEST(Lle, IsolatedRowsAndClumpsOfCopiesAreEmbedded) {
  Points points = family(Family::gaussian, 160, 3);
  points.rows.insert(points.rows.end(), {1e6, 0, 0});
  for (int copies = 0; copies < 20; ++copies) points.rows.insert(points.rows.end(), {0, 5e5, 0});
  for (const LleVariant variant : kVariants) {
    const Lle found = lle(plain(), points.view(), {.k = 8, .variant = variant});
    check_columns(found, std::string(name_of(variant)));
    ASSERT_EQ(found.pieces.size(), 2U);
    EXPECT_EQ(found.pieces[1].rows, 20);
    for (const double x : found.embedding) ASSERT_TRUE(std::isfinite(x));
  }
}

// A device against the CPU, where both find the same problem (tests that go by `contexts` compare it with the
// reference).
class LleOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = cuda_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  static Context device() { return cuda_context(); }
};

// Sines of the angles of the columns of one embedding to the space of another's, all columns orthonormal.
double farthest(const Lle& from, const Lle& to) {
  const std::int64_t dim = from.options.dim;
  const auto n = static_cast<std::int64_t>(from.piece.size());
  double worst = 0;
  for (std::int64_t c = 0; c < dim; ++c) {
    std::vector<double> left(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) left[i] = from.embedding[i * dim + c];
    for (std::int64_t b = 0; b < dim; ++b) {
      double dot = 0;
      for (std::int64_t i = 0; i < n; ++i) dot += from.embedding[i * dim + c] * to.embedding[i * dim + b];
      for (std::int64_t i = 0; i < n; ++i) left[i] -= dot * to.embedding[i * dim + b];
    }
    double square = 0;
    for (const double x : left) square += x * x;
    worst = std::max(worst, std::sqrt(square));
  }
  return worst;
}

void check_device_agrees(const Context& device, const Points& points, std::int64_t k, std::int64_t dim) {
  for (const LleVariant variant : kVariants) {
    const LleOptions options{.k = k, .dim = dim, .variant = variant, .solver = LleSolver::direct};
    const std::string name = points.name + ", " + std::string(name_of(variant));
    const Lle host = lle(plain(), points.view(), options);
    const Lle found = lle(device, points.view(), options);
    EXPECT_NE(found.plan.reason.find("solved on the device"), std::string::npos) << found.plan.reason;
    check_columns(found, name);
    ASSERT_EQ(found.pieces.size(), 1U) << name;
    const LlePiece& a = host.pieces[0];
    const LlePiece& b = found.pieces[0];
    EXPECT_EQ(b.counted, a.counted) << name;
    // A bound by sums of entries: of blocks that are a basis of some space it depends on which basis that is.
    if (variant == LleVariant::standard) {
      EXPECT_TRUE(std::abs(b.norm - a.norm) <= 1e-9 * a.norm) << name;
    }
    for (std::int64_t c = 0; c < dim; ++c) {
      // Each may be off by the contract's bound.
      const double bound = 2 * std::max(1e-6 * a.singular_values[c], 1e-14 * std::sqrt(a.norm));
      EXPECT_TRUE(std::abs(b.singular_values[c] - a.singular_values[c]) <= bound) << name << ": " << c;
      EXPECT_TRUE(b.residuals[c] <= 1e-14 * b.norm) << name << ": residual " << b.residuals[c];
    }
    const double last = a.singular_values.back() * a.singular_values.back();
    const double gap = a.next_singular_value * a.next_singular_value - last;
    EXPECT_TRUE(farthest(found, host) <= 2 * std::max(1e-6, 10 * kEpsilon * a.norm / gap)) << name;
    const Lle again = lle(device, points.view(), options);
    EXPECT_TRUE(same_bits(found.embedding, again.embedding)) << name;
    EXPECT_TRUE(same_bits(b.singular_values, again.pieces[0].singular_values)) << name;
  }
}

TEST_F(LleOnDevice, AgreesWithTheHostOnASwissRoll) {
  check_device_agrees(device(), shape(vicinal::Shape::swiss_roll, 2000), 12, 2);
}
TEST_F(LleOnDevice, AgreesWithTheHostOnAnSCurve) {
  check_device_agrees(device(), shape(vicinal::Shape::s_curve, 1301), 10, 1);
}
TEST_F(LleOnDevice, AgreesWithTheHostInManyColumns) {
  const Points plane = shape(vicinal::Shape::swiss_roll, 600, 0.01);
  constexpr std::int64_t kCols = 70;
  Points points{{}, kCols, "swiss roll in many columns"};
  for (std::int64_t i = 0; i < plane.n(); ++i) {
    for (std::int64_t c = 0; c < kCols; ++c) {
      double sum = 0;
      for (std::int64_t a = 0; a < 3; ++a)
        sum += plane.rows[i * 3 + a] * std::cos(static_cast<double>((c + 1) * (a + 1) * (a + 1)));
      points.rows.push_back(sum);
    }
  }
  check_device_agrees(device(), points, 14, 2);
}
// Neighborhoods that shared memory does not hold.
TEST_F(LleOnDevice, AgreesWithTheHostWithManyNeighbors) {
  check_device_agrees(device(), shape(vicinal::Shape::swiss_roll, 300, 0.1), 90, 2);
}
TEST_F(LleOnDevice, EmbedsPiecesOfEverySize) {
  Points points = shape(vicinal::Shape::s_curve, 700);
  for (std::int64_t i = 400; i < 600; ++i) points.rows[i * 3] += 100;
  for (std::int64_t i = 600; i < 700; ++i) points.rows[i * 3] += 300;  // small enough for the dense solver
  const Lle host = lle(plain(), points.view(), {.k = 10});
  const Lle found = lle(device(), points.view(), {.k = 10});
  ASSERT_EQ(found.pieces.size(), 3U);
  check_columns(found, "three pieces");
  EXPECT_EQ(found.piece, host.piece);
  for (std::size_t i = 0; i < found.embedding.size(); ++i) {
    EXPECT_TRUE(std::abs(found.embedding[i] - host.embedding[i]) <= 2e-6) << i;
  }
}
TEST_F(LleOnDevice, IsLeftToTheHostWhereThatIsAskedFor) {
  const Points points = shape(vicinal::Shape::swiss_roll, 500);
  const NeighborGraph graph = knn(plain(), points.view(), {.k = 12});
  const Lle host = lle(plain(), points.view(), graph, {});
  const Lle found = lle(device(), points.view(), graph, {.solver = LleSolver::cpu});
  EXPECT_NE(found.plan.reason.find("solved on the host"), std::string::npos) << found.plan.reason;
  EXPECT_TRUE(same_bits(found.embedding, host.embedding));
}
TEST_F(LleOnDevice, TakesTablesInItsMemory) {
  const Points points = shape(vicinal::Shape::swiss_roll, 400);
  const auto n = static_cast<std::int64_t>(points.rows.size()) / 3;
  const DeviceArray<double> array(points.rows);
  const TableView there(array.data(), DType::float64, n, 3, 3, 1, Memory::cuda);
  const std::vector<float> narrow(points.rows.begin(), points.rows.end());
  const DeviceArray<float> narrow_array(narrow);
  // Every other row, columns backwards.
  const TableView strided(narrow.data() + 2, DType::float32, n / 2, 3, 6, -1);
  const TableView strided_there(narrow_array.data() + 2, DType::float32, n / 2, 3, 6, -1, Memory::cuda);
  for (const LleSolver solver : {LleSolver::cpu, LleSolver::dense}) {
    const Lle host = lle(plain(), points.view(), {.solver = solver});
    const Lle found = lle(device(), there, {.solver = solver});
    EXPECT_TRUE(same_bits(found.embedding, host.embedding));
    const NeighborGraph graph = knn(plain(), points.view(), {.k = 12});
    EXPECT_TRUE(same_bits(lle(device(), there, graph, {.solver = solver}).embedding, host.embedding));
    EXPECT_TRUE(same_bits(lle(device(), strided_there, {.solver = solver}).embedding,
                          lle(plain(), strided, {.solver = solver}).embedding));
    const std::vector<double> placed = transform(plain(), Index(plain(), points.view()), host, points.view());
    EXPECT_TRUE(same_bits(transform(device(), Index(device(), there), found, there), placed));
    const LleQuality judged = lle_quality(plain(), points.view(), host, {.rows = 90});
    const LleQuality judged_there = lle_quality(device(), there, found, {.rows = 90});
    EXPECT_EQ(judged_there.trustworthiness, judged.trustworthiness);
    EXPECT_EQ(judged_there.continuity, judged.continuity);
    EXPECT_TRUE(same_bits(judged_there.conditions, judged.conditions));
  }
  EXPECT_GE(plan_lle(device(), there, {.solver = LleSolver::cpu}).memory,
            plan_lle(device(), points.view(), {.solver = LleSolver::cpu}).memory + points.rows.size() * 8);
  refused([&] { lle(plain(), there, {}); }, ErrorCode::device_unavailable, "table");
}
TEST_F(LleOnDevice, IsTakenWhereItIsThere) {
  const Points points = shape(vicinal::Shape::swiss_roll, 300);
  const Context chosen = Context::automatic({.threads = 3});
  const Plan plan = plan_lle(chosen, points.view());
  EXPECT_NE(plan.reason.find("direct on the device"), std::string::npos) << plan.reason;
  const Lle found = lle(chosen, points.view());
  EXPECT_EQ(found.pieces[0].counted, 2);
  EXPECT_GT(found.pieces[0].fill, 0);
  EXPECT_GT(found.pieces[0].flops, 0);
  EXPECT_GT(found.plan.device_memory, 0U);
  EXPECT_TRUE(same_bits(lle(chosen, points.view()).embedding, found.embedding));
}
TEST_F(LleOnDevice, OrdersManyPointsAsTheHostDoes) {
  const Points points = shape(vicinal::Shape::swiss_roll, 150000);
  const NeighborGraph graph = knn(plain(), points.view(), {.k = 12});
  const LleOptions options{.solver = LleSolver::direct, .certify = false};
  const Lle found = lle(device(), points.view(), graph, options);
  const Lle host = lle(plain(), points.view(), graph, options);
  EXPECT_EQ(found.pieces[0].fill, host.pieces[0].fill);
  EXPECT_EQ(found.pieces[0].flops, host.pieces[0].flops);
  for (std::size_t c = 0; c < 2; ++c) {
    const double sigma = host.pieces[0].singular_values[c];
    const double least = 1e-14 * std::sqrt(host.pieces[0].norm);
    EXPECT_TRUE(std::abs(found.pieces[0].singular_values[c] - sigma) <= std::max(1e-6 * sigma, least)) << c;
  }
}
TEST_F(LleOnDevice, RefusesAFactorThatDoesNotFitBeforeItStarts) {
  const Points points = family(Family::gaussian, 3000, 15);
  const NeighborGraph graph = knn(plain(), points.view(), {.k = 12});
  const LleOptions direct{.solver = LleSolver::direct};
  const std::uint64_t needed = lle(device(), points.view(), graph, direct).plan.device_memory;
  const Context tight = Context::cuda({.device_memory_limit = needed});
  try {
    lle(tight, points.view(), graph, direct);
    FAIL() << "blocks and factor in the factor's " << needed << " bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::over_memory);
    EXPECT_NE(std::string(error.what()).find("lle: the factor needs "), std::string::npos) << error.what();
  }
  // Products are what is left, unless the factor was asked for.
  const Lle found = lle(tight, points.view(), graph, {});
  EXPECT_EQ(found.pieces[0].solver, LleSolver::lanczos);
  EXPECT_EQ(found.pieces[0].fill, 0);
  EXPECT_TRUE(
      same_bits(found.embedding, lle(device(), points.view(), graph, {.solver = LleSolver::lanczos}).embedding));
}
TEST_F(LleOnDevice, RefusesAsTheHostDoes) {
  const Points points = shape(vicinal::Shape::swiss_roll, 3000);
  const auto code_of = [&](const Context& ctx, const LleOptions& options) {
    try {
      lle(ctx, points.view(), options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const LleOptions undetermined{.k = 12, .reg = 0};
  EXPECT_EQ(code_of(device(), undetermined), code_of(plain(), undetermined));
  const std::string narrow = code_of(Context::cuda({.device_memory_limit = std::uint64_t{1} << 21}), {});
  EXPECT_NE(narrow.find("bytes of device memory"), std::string::npos) << narrow;
  for (const std::string_view stage : {"weights", "factor", "solve"}) {
    const CancelToken token;
    CudaOptions options;
    options.cancel = token;
    options.progress = [&](std::string_view at, double) {
      if (at == stage) token.cancel();
    };
    EXPECT_THROW(lle(Context::cuda(options), points.view(), {}), Error) << stage;
  }
}

TEST(LleRefusal, OfOptionsTablesAndGraphs) {
  const Points points = shape(vicinal::Shape::swiss_roll, 60);
  const auto with = [&](const LleOptions& options) { return [&, options] { lle(plain(), points.view(), options); }; };
  const auto bad = ErrorCode::invalid_argument;
  refused(with({.k = 60}), bad, "k: is 60, but at most 59");
  refused(with({.k = 0}), bad, "k: is 0");
  refused(with({.k = 4, .dim = 4}), bad, "dim: is 4, must be below k");
  refused(with({.dim = 0}), bad, "dim: is 0");
  refused(with({.max_steps = 0}), bad, "max_steps: is 0");
  const Points more = shape(vicinal::Shape::swiss_roll, 300);
  for (const LleSolver solver : {LleSolver::lanczos, LleSolver::arnoldi}) {
    refused([&] { lle(plain(), more.view(), {.solver = solver, .max_steps = 40}); }, ErrorCode::internal,
            "max_steps: ");
  }
  refused(with({.reg = -1}), bad, "reg: is -1");
  refused(with({.reg = std::nan("")}), bad, "reg: is nan");
  refused(with({.k = 5, .variant = LleVariant::hessian}), bad, "more than 5 neighbors");
  refused(with({.k = 3, .variant = LleVariant::ltsa}), bad, "more than 3 neighbors");
  refused(with({.k = 12, .reg = 0}), ErrorCode::bad_data, "reg: is 0, but the neighbors of row");
  for (const std::int64_t n : {1, 2}) {
    const TableView few(points.rows.data(), n, 3);
    refused([&] { lle(plain(), few, {}); }, bad, "k: is 12, but at most " + std::to_string(n - 1) + " of the");
    refused([&] { lle(plain(), few, {.k = 1, .dim = 1}); }, bad, n == 1 ? "k: is 1, but at most 0" : "dim: is 1, must");
  }
  Points broken = points;
  broken.rows[7 * 3 + 1] = std::nan("");
  refused([&] { lle(plain(), broken.view(), {}); }, ErrorCode::bad_data, "row 7");
  refused([&] { lle(plain(), TableView::blocks(DType::float64, 60, 3, [](auto, auto, void*) {}), {}); }, bad,
          "comes in blocks");
  NeighborGraph graph = knn(plain(), points.view(), {.k = 5});
  graph.ids[10] = 2;  // of row 2
  refused([&] { lle(plain(), points.view(), graph, {}); }, ErrorCode::bad_data, "graph: the neighbors of row 2");
  const Points fewer = shape(vicinal::Shape::swiss_roll, 50);
  refused([&] { lle(plain(), fewer.view(), graph, {}); }, bad, "graph: joins 60 rows");
  const Lle fitted = lle(plain(), points.view(), {});
  const Index index(plain(), fewer.view());
  refused([&] { transform(plain(), index, fitted, points.view()); }, bad, "fitted: is an embedding of 60 rows");
  refused([&] { lle(Context::cpu({.memory_limit = 20000}), points.view(), {}); }, ErrorCode::over_memory, "20");
  EXPECT_THROW(lle_variant_from("best"), Error);
  EXPECT_THROW(lle_solver_from("best"), Error);
  EXPECT_THROW(lle_pieces_from("best"), Error);
}

TEST(LleRefusal, StopsWhenItIsCancelled) {
  const Points points = shape(vicinal::Shape::swiss_roll, 5000);
  for (const std::string_view stage : {"weights", "order", "factor", "solve"}) {
    const CancelToken token;
    CpuOptions options{.threads = 2, .cancel = token};
    options.progress = [&](std::string_view at, double) {
      if (at == stage) token.cancel();
    };
    EXPECT_THROW(lle(Context::cpu(options), points.view(), {}), Error) << stage;
  }
  for (const LleSolver solver : {LleSolver::lanczos, LleSolver::arnoldi}) {
    for (const std::string_view stage : {std::string_view("weights"), name_of(solver)}) {
      const CancelToken token;
      CpuOptions options{.threads = 2, .cancel = token};
      options.progress = [&](std::string_view at, double) {
        if (at == stage) token.cancel();
      };
      EXPECT_THROW(lle(Context::cpu(options), points.view(), {.solver = solver}), Error) << stage;
    }
  }
}

}  // namespace
}  // namespace vicinal::contract

// Cancel polls of the solver's steps on one thread, counted, and of one that waits for others.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <numeric>
#include <vector>

#include "counted_polls.hpp"
#include "solver/agenda.hpp"
#include "solver/cell_graph.hpp"
#include "solver/halving.hpp"
#include "solver/smallest.hpp"
#include "solver/tall.hpp"
#include "solver_data.hpp"

namespace vicinal::solver {
namespace {

// Equal points are in one of the 64 parts, which is halved once before its parts are small enough. Before that planes
// sort the points by part, in two loops.
TEST(Polls, ALargePartOfCells) {
  constexpr std::int64_t kPoints = kBetweenLooks + 1;
  const core::RawVector<float> places(static_cast<std::size_t>(kPoints), 1.0F);
  const Context ctx = polled_context();
  const std::int64_t loop = of_tasks(ctx, (kPoints + kTaskPoints - 1) / kTaskPoints);
  EXPECT_GE(polls_of([&] { (void)kd_cells(ctx, places, 1); }), 2 * loop + of_tasks(ctx, 64) + 1);
}

// A part that is taken has not been put back: others wait for what it becomes. Without a look they would until the
// agenda is stopped.
TEST(Polls, AnAgendaThatIsWaitedFor) {
  CpuOptions options{.threads = 1};
  options.cancel.cancel();
  const Context cancelled = Context::cpu(options);
  Agenda agenda(1);
  Agenda::Entry entry;
  ASSERT_TRUE(agenda.take(cancelled, entry));
  std::future<bool> waiting = std::async(std::launch::async, [&] { return agenda.take(cancelled, entry); });
  if (waiting.wait_for(std::chrono::seconds(20)) == std::future_status::timeout) agenda.stop();
  EXPECT_THROW((void)waiting.get(), Error);
}

// Orthogonal columns need one sweep.
TEST(Polls, ASweepOfRotations) {
  std::vector<double> columns = {1, 0, 0, 1};
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { make_orthogonal(ctx, {columns.data(), 2, 2}); }), 1);
}

// Each point's rows are reflected; of the triangle of as many columns as points, less one, each is a step; then there
// is a sweep at least.
TEST(Polls, ADenseDecomposition) {
  constexpr Point kSide = 8;
  constexpr std::int64_t kPoints = kSide * kSide;
  const LocalRows a = grid(kSide);
  const Context ctx = polled_context();
  EXPECT_GE(polls_of([&] { (void)dense(ctx, a, 2); }), kPoints + (kPoints - 1) + 1);
}

// A grid whose halves are leaves. Its points are taken, and each of three ways is; the best is the first or second one,
// and taken again. Then points get their sides, the band between them is looked for, and points are shared out. Notes
// are a task, and so is the work.
TEST(Polls, APartThatIsHalved) {
  constexpr Point kSide = 9;
  const Context ctx = polled_context();
  const LocalRows a = grid(kSide);
  const Incidence in = incidence_of(ctx, a);
  std::vector<Point> near;
  for (Point i = 0; i <= kSide; ++i) near.push_back(i * kSide);
  CellGraphs graphs;
  const std::int64_t cells = polls_of([&] { graphs = cell_graphs_of(ctx, Pattern{a, in}, near); });
  std::vector<Point> points(static_cast<std::size_t>(a.points));
  std::iota(points.begin(), points.end(), 0);
  Halving halving(ctx, graphs);
  const std::int64_t halves = polls_of([&] { halving.halve(points.data(), points.data() + points.size()); });
  EXPECT_GE(halves, 1 + 3 + 1);
  EXPECT_GE(polls_of([&] { (void)dissect(ctx, Pattern{a, in}, near); }), cells + 2 * of_tasks(ctx, 1) + halves + 3);
}

// Each front is a look on the way down and one on the way up, beside those before the tasks.
TEST(Polls, ASolveOfSmallFronts) {
  constexpr Point kSide = 60;
  const Context ctx = polled_context();
  const Ordered made = ordered(ctx, grid(kSide), kSide);
  const Factor factor(ctx, made.a, made.in, made.symbolic, {-1, 0.5});
  Vectors x(made.a.points, 8);
  const auto trees = static_cast<std::int64_t>(made.symbolic.trees.size());
  const std::int64_t tasks = 2 * of_tasks(ctx, trees) + of_tasks(ctx, (made.a.points + kTaskPoints - 1) / kTaskPoints);
  const std::int64_t polls = polls_of([&] { factor.solve(ctx, x); });
  EXPECT_GE(polls, tasks + 2 * static_cast<std::int64_t>(made.symbolic.nodes.size()));
}

}  // namespace
}  // namespace vicinal::solver

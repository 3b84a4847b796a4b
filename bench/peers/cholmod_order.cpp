// METIS and CHOLMOD on the graph of M, for ordering.py: how long they order and factor, and what fill and work is left.
// Reads a file of int64 n, int64 count, int64 first[n + 1], int32 neighbors[count] (both directions, no diagonal) and
// prints JSON. The values are those of a graph's Laplacian plus one: a factor's time does not depend on them.
#include <metis.h>
#include <suitesparse/cholmod.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

namespace {

struct Seconds {
  double wall;
  double cpu;
};

double now(clockid_t clock) {
  timespec at{};
  clock_gettime(clock, &at);
  return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
}

template <class Body>
Seconds timed(const Body& body) {
  const Seconds start{now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID)};
  body();
  return {now(CLOCK_MONOTONIC) - start.wall, now(CLOCK_PROCESS_CPUTIME_ID) - start.cpu};
}

/// The lower triangle, stored column by column.
cholmod_sparse* matrix_of(std::int64_t n, const std::vector<std::int64_t>& first, const std::vector<std::int32_t>& ids,
                          cholmod_common* common) {
  const auto entries = static_cast<std::size_t>(n) + ids.size() / 2;
  cholmod_sparse* a = cholmod_l_allocate_sparse(n, n, entries, 1, 1, -1, CHOLMOD_REAL, common);
  auto* columns = static_cast<SuiteSparse_long*>(a->p);
  auto* rows = static_cast<SuiteSparse_long*>(a->i);
  auto* values = static_cast<double*>(a->x);
  SuiteSparse_long at = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    columns[j] = at;
    rows[at] = j;
    values[at++] = 1 + static_cast<double>(first[j + 1] - first[j]);
    for (std::int64_t e = first[j]; e < first[j + 1]; ++e) {
      if (ids[e] < j) continue;
      rows[at] = ids[e];
      values[at++] = -1;
    }
  }
  columns[n] = at;
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  std::int64_t head[2];
  if (file == nullptr || std::fread(head, sizeof(head), 1, file) != 1) return 2;
  const auto n = static_cast<std::size_t>(head[0]);
  std::vector<std::int64_t> first(n + 1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(head[1]));
  if (std::fread(first.data(), sizeof(std::int64_t), n + 1, file) != n + 1) return 2;
  if (std::fread(ids.data(), sizeof(std::int32_t), ids.size(), file) != ids.size()) return 2;
  std::fclose(file);

  std::vector<idx_t> xadj(first.begin(), first.end());
  std::vector<idx_t> adjacency(ids.begin(), ids.end());
  std::vector<idx_t> order(n);
  std::vector<idx_t> place(n);
  auto count = static_cast<idx_t>(n);
  const Seconds metis =
      timed([&] { METIS_NodeND(&count, xadj.data(), adjacency.data(), nullptr, nullptr, order.data(), place.data()); });

  cholmod_common common;
  cholmod_l_start(&common);
  common.supernodal = CHOLMOD_SUPERNODAL;
  common.nmethods = 1;
  common.method[0].ordering = CHOLMOD_GIVEN;
  cholmod_sparse* a = matrix_of(head[0], first, ids, &common);
  std::vector<SuiteSparse_long> given(order.begin(), order.end());
  cholmod_factor* factor = nullptr;
  const Seconds symbolic = timed([&] { factor = cholmod_l_analyze_p(a, given.data(), nullptr, 0, &common); });
  const Seconds numeric = timed([&] { cholmod_l_factorize(a, factor, &common); });
  cholmod_dense* b = cholmod_l_ones(n, 8, CHOLMOD_REAL, &common);
  const Seconds solve = timed([&] { cholmod_l_solve(CHOLMOD_A, factor, b, &common); });
  // The largest difference between the given right side and the matrix times the solution, of one column.
  const auto* x = static_cast<const double*>(cholmod_l_solve(CHOLMOD_A, factor, b, &common)->x);
  double residual = 0;
  for (std::size_t j = 0; j < n; ++j) {
    double sum = (1 + static_cast<double>(first[j + 1] - first[j])) * x[j];
    for (std::int64_t e = first[j]; e < first[j + 1]; ++e) sum -= x[ids[e]];
    if (!(std::abs(sum - 1) <= residual)) residual = std::abs(sum - 1);  // also a NaN
  }
  std::printf(
      "{\"metis\": \"%d.%d.%d\", \"cholmod\": \"%d.%d.%d\", \"residual\": %.3g, \"metis_seconds\": %.6f, "
      "\"metis_cpu\": %.6f, \"symbolic_seconds\": %.6f, "
      "\"factor_seconds\": %.6f, "
      "\"factor_cpu\": %.6f, \"solve_8_seconds\": %.6f, \"fill\": %.0f, \"flops\": %.6g, \"factor_bytes\": %.0f, "
      "\"peak_bytes\": %zu, \"status\": %d}\n",
      METIS_VER_MAJOR, METIS_VER_MINOR, METIS_VER_SUBMINOR, CHOLMOD_MAIN_VERSION, CHOLMOD_SUB_VERSION,
      CHOLMOD_SUBSUB_VERSION, residual, metis.wall, metis.cpu, symbolic.wall, numeric.wall, numeric.cpu, solve.wall,
      common.lnz, common.fl, 8 * static_cast<double>(factor->xsize), common.memory_usage, common.status);
  return 0;
}

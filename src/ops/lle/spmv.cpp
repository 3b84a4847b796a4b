// spmv: check, multiply where the context is.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "backend/backend.hpp"
#include "backend/krylov.hpp"
#include "core/entry.hpp"
#include "core/memory.hpp"
#include "core/names.hpp"
#include "core/seconds.hpp"
#include "ops/common/refuse.hpp"
#include "vicinal/sparse.hpp"

namespace vicinal {
namespace {

constexpr std::array<core::Named<SpmvMethod>, 8> kSpmvMethods = {{
    {SpmvMethod::automatic, "automatic"},
    {SpmvMethod::rows, "rows"},
    {SpmvMethod::block_row, "block_row"},
    {SpmvMethod::warp_row, "warp_row"},
    {SpmvMethod::padded_row, "padded_row"},
    {SpmvMethod::sliced_rows, "sliced_rows"},
    {SpmvMethod::eight, "eight"},
    {SpmvMethod::library, "library"},
}};

void check_spmv(const SparseView& a, std::span<const double> x, std::int64_t repeat) {
  if (a.offsets.empty() || a.offsets.front() != 0) refuse("offsets: do not begin with 0");
  for (std::size_t i = 1; i < a.offsets.size(); ++i) {
    if (a.offsets[i] < a.offsets[i - 1]) refuse(fmt::format("offsets: row {} ends before it begins", i - 1));
  }
  const auto entries = static_cast<std::int64_t>(a.index.size());
  if (a.offsets.back() != entries || a.values.size() != a.index.size()) {
    refuse(fmt::format("values: {} columns and {} values were given for {} entries", entries, a.values.size(),
                       a.offsets.back()));
  }
  if (static_cast<std::int64_t>(x.size()) != a.cols) {
    refuse(fmt::format("x: has {} numbers, but the matrix {} columns", x.size(), a.cols));
  }
  for (std::int64_t e = 0; e < entries; ++e) {
    if (a.index[e] < 0 || a.index[e] >= a.cols) {
      refuse(fmt::format("index: entry {} is in column {} of {}", e, a.index[e], a.cols));
    }
  }
  if (repeat < 1) refuse(fmt::format("repeat: is {}, must be at least 1", repeat));
}

solver::Csr copy_of(const SparseView& a) {
  return {a.cols,
          {a.offsets.begin(), a.offsets.end()},
          {a.index.begin(), a.index.end()},
          {a.values.begin(), a.values.end()}};
}

}  // namespace

std::string_view name_of(SpmvMethod method) noexcept {
  return core::name_in(kSpmvMethods, method);
}
SpmvMethod spmv_method_from(std::string_view name) {
  return core::value_in(kSpmvMethods, "method", name);
}

Spmv spmv(const Context& ctx, const SparseView& a, std::span<const double> x, SpmvMethod method,
          std::int64_t repeat) try {
  const core::Entry entry;
  check_spmv(a, x, repeat);
  Spmv found;
  const auto entries = static_cast<std::uint64_t>(a.index.size());
  found.bytes = entries * (sizeof(std::int32_t) + sizeof(double)) + a.offsets.size_bytes() + x.size_bytes() +
                static_cast<std::uint64_t>(a.rows()) * sizeof(double);
  core::require_memory(ctx, 2 * found.bytes, "spmv");
  if (kernels::backend_of(ctx).krylov().product(ctx, {a, x, method, repeat}, found)) return found;
  if (method != SpmvMethod::automatic && method != SpmvMethod::rows) {
    refuse(fmt::format("method: {} needs a CUDA device", name_of(method)));
  }
  const solver::Csr rows = copy_of(a);
  solver::Vectors from(a.cols, 1);
  solver::Vectors to(a.rows(), 1);
  std::copy(x.begin(), x.end(), from.values.data());
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    solver::multiply(ctx, rows, from, {}, to);
    seconds.push_back(seconds_since(start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeat / 2, seconds.end());
  found.seconds = seconds[repeat / 2];
  found.product.assign(to.values.data(), to.values.data() + a.rows());
  return found;
} catch (const std::bad_alloc&) {
  core::refuse_allocation();
}

}  // namespace vicinal

// A Krylov space in host memory: see operator.hpp. Rows are parted as they are in tall.cpp, so that no sum depends on
// who adds it (contract clause 4). The filter is Chebyshev's three-term recurrence, each term one pass over A and one
// over its transpose, which adds the two terms before.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "simd/sparse_kernels.hpp"
#include "solver/operator.hpp"

namespace vicinal::solver {
namespace {

constexpr std::int64_t kSumParts = 64;
constexpr std::int64_t kStripRows = 256;  // stay in the cache while blocks pass over them

class HostKrylov : public KrylovSpace {
 public:
  HostKrylov(const Csr& a, const Csr& transpose, std::int64_t block, std::int64_t blocks)
      : KrylovSpace(a.cols, block, blocks),
        a_(a),
        transpose_(transpose),
        image_(a.rows(), block),
        spare_(a.cols, block) {
    for (std::int64_t i = 0; i < blocks; ++i) basis_.emplace_back(a.cols, block);
  }

  void store(const Context& ctx, std::int64_t at, const Vectors& x) override { copy(ctx, x, basis_[at]); }
  Vectors load(const Context& ctx, std::int64_t at) override {
    Vectors x(points(), block());
    copy(ctx, basis_[at], x);
    return x;
  }

  void filter(const Context& ctx, const Filter& filter, std::int64_t from, std::int64_t to) override {
    const double middle = (filter.low + filter.high) / 2;
    const double radius = (filter.high - filter.low) / 2;
    Vectors& newest = basis_[to];
    multiply(ctx, a_, basis_[from], {}, image_);
    multiply(ctx, transpose_, image_, {-1 / radius, middle / radius, &basis_[from], 0}, newest);
    if (filter.degree > 1) copy(ctx, basis_[from], spare_);
    for (std::int64_t i = 1; i < filter.degree; ++i) {
      multiply(ctx, a_, newest, {}, image_);
      multiply(ctx, transpose_, image_, {-2 / radius, 2 * middle / radius, &newest, -1}, spare_);
      std::swap(newest, spare_);
    }
    remove_means(ctx, newest);
  }

  Small project(const Context& ctx, std::int64_t count, std::int64_t at) override {
    Small all(count * block(), block());
    for (int pass = 0; pass < 2; ++pass) {
      const Small found = products(ctx, count, at);
      take_out(ctx, count, found, at);
      for (std::size_t i = 0; i < all.values.size(); ++i) all.values[i] += found.values[i];
    }
    return all;
  }

  Small gram(const Context& ctx, std::int64_t at) override { return inner(ctx, basis_[at], basis_[at]); }
  void scale(const Context& ctx, std::int64_t at, const Small& c) override { multiply(ctx, basis_[at], c); }

  void rotate(const Context& ctx, std::int64_t count, const Small& c) override {
    const std::int64_t b = block();
    const std::int64_t made = c.cols / b;
    const cpu::SparseKernels& kernels = cpu::sparse_kernels(ctx.isa());
    // Pieces [made, count] of -c, each [b, b].
    std::vector<double> pieces(c.values.size());
    for (std::int64_t o = 0; o < made; ++o) {
      for (std::int64_t i = 0; i < count * b; ++i) {
        for (std::int64_t j = 0; j < b; ++j) pieces[(o * count * b + i) * b + j] = -c(i, o * b + j);
      }
    }
    core::parallel_for(ctx, tasks(), [&](std::int64_t task, int /*worker*/) {
      std::vector<double> room(static_cast<std::size_t>(made * kStripRows * b));
      for_each_strip(task, [&](std::int64_t begin, std::int64_t rows) {
        std::fill(room.begin(), room.end(), 0.0);
        for (std::int64_t o = 0; o < made; ++o) {
          for (std::int64_t i = 0; i < count; ++i) {
            kernels.subtract({rows, b, b}, basis_[i].row(begin), &pieces[(o * count + i) * b * b],
                             &room[o * kStripRows * b]);
          }
        }
        for (std::int64_t o = 0; o < made; ++o) {
          std::copy_n(&room[o * kStripRows * b], rows * b, basis_[o].row(begin));
        }
      });
    });
  }

  void move(const Context& /*ctx*/, std::int64_t from, std::int64_t to) override {
    if (from != to) std::swap(basis_[from], basis_[to]);
  }

 private:
  [[nodiscard]] std::int64_t tasks() const { return (points() + kTaskPoints - 1) / kTaskPoints; }

  template <class Body>
  void for_each_strip(std::int64_t task, const Body& body) const {
    const std::int64_t end = std::min(points(), (task + 1) * kTaskPoints);
    for (std::int64_t begin = task * kTaskPoints; begin < end; begin += kStripRows) {
      body(begin, std::min(kStripRows, end - begin));
    }
  }

  void copy(const Context& ctx, const Vectors& from, Vectors& to) const {
    core::parallel_for(ctx, tasks(), [&](std::int64_t task, int /*worker*/) {
      for_each_strip(task, [&](std::int64_t begin, std::int64_t rows) {
        std::copy_n(from.row(begin), rows * block(), to.row(begin));
      });
    });
  }

  // Sums by parts of some tasks each, added in order.
  Small products(const Context& ctx, std::int64_t count, std::int64_t at) const {
    const std::int64_t b = block();
    const std::int64_t parts = std::min(kSumParts, tasks());
    const cpu::SparseKernels& kernels = cpu::sparse_kernels(ctx.isa());
    std::vector<Small> sums(static_cast<std::size_t>(parts), Small(count * b, b));
    core::parallel_for(ctx, parts, [&](std::int64_t p, int /*worker*/) {
      for (std::int64_t task = tasks() * p / parts; task < tasks() * (p + 1) / parts; ++task) {
        for_each_strip(task, [&](std::int64_t begin, std::int64_t rows) {
          for (std::int64_t i = 0; i < count; ++i) {
            kernels.inner({rows, b, b}, basis_[i].row(begin), basis_[at].row(begin), &sums[p].values[i * b * b]);
          }
        });
      }
    });
    for (std::int64_t p = 1; p < parts; ++p) {
      for (std::size_t i = 0; i < sums[0].values.size(); ++i) sums[0].values[i] += sums[p].values[i];
    }
    return std::move(sums[0]);
  }

  void take_out(const Context& ctx, std::int64_t count, const Small& c, std::int64_t at) {
    const std::int64_t b = block();
    const cpu::SparseKernels& kernels = cpu::sparse_kernels(ctx.isa());
    core::parallel_for(ctx, tasks(), [&](std::int64_t task, int /*worker*/) {
      for_each_strip(task, [&](std::int64_t begin, std::int64_t rows) {
        for (std::int64_t i = 0; i < count; ++i) {
          kernels.subtract({rows, b, b}, basis_[i].row(begin), &c.values[i * b * b], basis_[at].row(begin));
        }
      });
    });
  }

  const Csr& a_;
  const Csr& transpose_;
  std::vector<Vectors> basis_;
  Vectors image_;  // A of a block
  Vectors spare_;
};

}  // namespace

std::unique_ptr<KrylovSpace> host_space(const Csr& a, const Csr& transpose, std::int64_t block, std::int64_t blocks) {
  return std::make_unique<HostKrylov>(a, transpose, block, blocks);
}

std::uint64_t space_bytes(std::int64_t rows, std::int64_t points, std::int64_t block, std::int64_t blocks) {
  return static_cast<std::uint64_t>((rows + (blocks + 2) * points) * block) * sizeof(double);
}

}  // namespace vicinal::solver

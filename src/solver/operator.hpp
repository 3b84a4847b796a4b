// What a Krylov method asks of M = A'A and of a tall basis that lies where the products are made: on the host, or on a
// device (contract clause 17). The basis is blocks of `block` columns, [n, block] each, numbered from 0; matrices of a
// few columns go to and fro, blocks only when they are stored or loaded.
#pragma once

#include <cstdint>
#include <memory>

#include "solver/csr.hpp"
#include "solver/rows.hpp"
#include "solver/tall.hpp"
#include "vicinal/context.hpp"

namespace vicinal::solver {

/// The Chebyshev polynomial of M that is at most 1 on the eigenvalues in [low, high] and grows below them:
/// T_degree((low + high - 2 M) / (high - low)).
struct Filter {
  std::int64_t degree = 1;
  double low = 0;
  double high = 1;
};

class KrylovSpace {
 public:
  KrylovSpace(std::int64_t points, std::int64_t block, std::int64_t blocks)
      : points_(points), block_(block), blocks_(blocks) {}
  KrylovSpace(const KrylovSpace&) = delete;
  KrylovSpace& operator=(const KrylovSpace&) = delete;
  virtual ~KrylovSpace() = default;

  [[nodiscard]] std::int64_t points() const noexcept { return points_; }
  [[nodiscard]] std::int64_t block() const noexcept { return block_; }
  [[nodiscard]] std::int64_t blocks() const noexcept { return blocks_; }

  virtual void store(const Context& ctx, std::int64_t at, const Vectors& x) = 0;
  [[nodiscard]] virtual Vectors load(const Context& ctx, std::int64_t at) = 0;
  /// Block `to` becomes the filter of block `from`, less its means.
  virtual void filter(const Context& ctx, const Filter& filter, std::int64_t from, std::int64_t to) = 0;
  /// The products of the first `count` blocks with block `at`, [count * block, block], which are taken out of it.
  virtual Small project(const Context& ctx, std::int64_t count, std::int64_t at) = 0;
  /// x'x of block `at`.
  virtual Small gram(const Context& ctx, std::int64_t at) = 0;
  /// Block `at` times c [block, block].
  virtual void scale(const Context& ctx, std::int64_t at, const Small& c) = 0;
  /// The first blocks become the first `count` ones times c [count * block, some blocks].
  virtual void rotate(const Context& ctx, std::int64_t count, const Small& c) = 0;
  /// Block `to` becomes block `from`, whose contents are then anything.
  virtual void move(const Context& ctx, std::int64_t from, std::int64_t to) = 0;

 private:
  std::int64_t points_;
  std::int64_t block_;
  std::int64_t blocks_;
};

/// On the host. `a` and its transpose must outlive it.
std::unique_ptr<KrylovSpace> host_space(const Csr& a, const Csr& transpose, std::int64_t block, std::int64_t blocks);
/// Bytes of such a space of an A of so many rows.
std::uint64_t space_bytes(std::int64_t rows, std::int64_t points, std::int64_t block, std::int64_t blocks);

}  // namespace vicinal::solver

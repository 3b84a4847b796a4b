// See packed_table.hpp.
#include "cpu/nearest/packed_table.hpp"

namespace vicinal::cpu {
namespace {

std::int64_t blocks_of(std::int64_t rows, std::int64_t block) {
  return (rows + block - 1) / block;
}

std::int64_t padded_rows(const kernels::PackedKind& kind, std::int64_t rows) {
  return (rows + kind.lanes - 1) / kind.lanes * kind.lanes;
}

constexpr std::int64_t kTerms = 3;  // of a row, 4 bytes each

std::int64_t finer_columns(const Screen& screen) {
  return screen.finer() != nullptr ? screen.finer()->columns() : 0;
}

std::int64_t bytes_of_finer(std::int64_t columns) {
  return columns > 0 ? FinerTerms::image_bytes(columns) : 0;
}

}  // namespace

KeptRows::KeptRows(kernels::PackedKind kind, const Screen& screen, std::int64_t rows, std::int64_t block)
    : PackedTable(kind),
      screen_(screen),
      block_(block),
      blocks_(blocks_of(rows, block)),
      row_bytes_(Screen::row_bytes(kind.screen, static_cast<std::int64_t>(screen.centre().size()))),
      finer_bytes_(bytes_of_finer(finer_columns(screen))),
      bytes_(bytes(kind, static_cast<std::int64_t>(screen.centre().size()), finer_columns(screen), rows, block)),
      about_(std::make_unique<About[]>(static_cast<std::size_t>(blocks_))) {
  const std::int64_t padded = padded_rows(kind, rows);
  panels_.reserve(padded * row_bytes_);
  if (kind.screen == ScreenType::int8) {
    base_.reserve(padded);
  } else {
    start_.reserve(padded);
  }
  rho_.reserve(padded);
  kappa_.reserve(padded);
  if (finer_bytes_ > 0) finer_.reserve(rows * finer_bytes_);
}

std::uint64_t KeptRows::bytes(const kernels::PackedKind& kind, std::int64_t d, std::int64_t finer, std::int64_t rows,
                              std::int64_t block) {
  const std::int64_t row = Screen::row_bytes(kind.screen, d) + 4 * kTerms;
  return static_cast<std::uint64_t>(padded_rows(kind, rows) * row + rows * bytes_of_finer(finer)) +
         static_cast<std::uint64_t>(blocks_of(rows, block)) * sizeof(About);
}

PackedPlace KeptRows::place(std::int64_t block) noexcept {
  const std::int64_t row = block * block_;
  return {panels_.data() + row * row_bytes_,
          start_.data() != nullptr ? start_.data() + row : nullptr,
          base_.data() != nullptr ? base_.data() + row : nullptr,
          rho_.data() + row,
          kappa_.data() + row,
          finer_bytes_ > 0 ? finer_.data() + row * finer_bytes_ : nullptr};
}

void KeptRows::publish(std::int64_t block, const PackedRows& about) noexcept {
  About& to = about_[static_cast<std::size_t>(block)];
  to.typical_norm = about.typical_norm;
  to.least_rho = about.least_rho;
  to.least_kappa = about.least_kappa;
  to.state.store(State::ready, std::memory_order_release);
  ready_.fetch_add(1, std::memory_order_acq_rel);
}

PackedRows KeptRows::rows(std::int64_t block) const noexcept {
  const std::int64_t row = block * block_;
  const About& about = about_[static_cast<std::size_t>(block)];
  return {panels_.data() + row * row_bytes_,
          start_.data() != nullptr ? start_.data() + row : nullptr,
          base_.data() != nullptr ? base_.data() + row : nullptr,
          rho_.data() + row,
          kappa_.data() + row,
          about.typical_norm,
          about.least_rho,
          about.least_kappa};
}

}  // namespace vicinal::cpu

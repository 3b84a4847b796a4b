// The rows of an index packed for one screen, kept between searches (backend/nearest.hpp: PackedTable). The rows are
// divided into the blocks of a search; each block is packed once, by the search that claims it first. No search waits
// for another: one that finds a block claimed packs it for itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "backend/nearest.hpp"
#include "core/aligned.hpp"
#include "cpu/nearest/screen.hpp"

namespace vicinal::cpu {

/// Packed rows as a screen's kernel reads them; borrowed.
struct PackedRows {
  const std::byte* panels = nullptr;   // [panels][words, tile_rows] of 32 bits
  const float* start = nullptr;        // [padded rows], and so the others; null where `base` is used instead
  const std::int32_t* base = nullptr;  // null where `start` is used alone
  const float* rho = nullptr;
  const float* kappa = nullptr;
  double typical_norm = 0;
  double least_rho = 0;  // over the rows that the screen judges
  double least_kappa = 0;

  /// Whether a row survives whatever the query: then its terms are 0 (Screen::always), which are above 0 for all
  /// others.
  [[nodiscard]] bool always(std::int64_t row) const noexcept { return rho[row] == 0; }
};

/// Where rows are packed to: as PackedRows.
struct PackedPlace {
  std::byte* panels = nullptr;
  float* start = nullptr;
  std::int32_t* base = nullptr;
  float* rho = nullptr;
  float* kappa = nullptr;
  std::byte* finer = nullptr;  // [rows][FinerTerms::image_bytes]; null where no finer images are kept
};

/// A finer image (screen.hpp) as an index keeps it: whole cache lines, which begin with the columns and end with these
/// terms. What is between them is zero, and so are the last bytes of a query's image.
struct FinerTerms {
  std::int32_t base;
  float rho;
  float kappa;

  /// Bytes of an image in so many columns, its terms included.
  static std::int64_t image_bytes(std::int64_t columns) {
    constexpr std::int64_t kLine = 64;
    const std::int64_t used = Screen::row_bytes(ScreenType::int8, columns) + std::int64_t{sizeof(FinerTerms)};
    return (used + kLine - 1) / kLine * kLine;
  }
  static FinerTerms of(const std::byte* image, std::int64_t bytes) noexcept {
    FinerTerms terms;
    std::memcpy(&terms, image + bytes - sizeof(FinerTerms), sizeof(FinerTerms));
    return terms;
  }
};

class KeptRows final : public kernels::PackedTable {
 public:
  /// Of `rows` distinct rows in blocks of `block`, a multiple of the kind's lanes. Takes memory, but writes none of it.
  KeptRows(kernels::PackedKind kind, const Screen& screen, std::int64_t rows, std::int64_t block);

  /// `finer`: columns of finer images; 0: none.
  static std::uint64_t bytes(const kernels::PackedKind& kind, std::int64_t d, std::int64_t finer, std::int64_t rows,
                             std::int64_t block);
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] bool is_complete() const override { return ready_.load(std::memory_order_acquire) == blocks_; }

  [[nodiscard]] const Screen& screen() const noexcept { return screen_; }
  [[nodiscard]] std::int64_t block() const noexcept { return block_; }

  [[nodiscard]] bool is_ready(std::int64_t block) const noexcept {
    return about_[static_cast<std::size_t>(block)].state.load(std::memory_order_acquire) == State::ready;
  }
  /// Whether the caller is to pack the block: then `publish` or `give_up` must follow.
  bool claim(std::int64_t block) noexcept {
    State expected = State::nothing;
    return about_[static_cast<std::size_t>(block)].state.compare_exchange_strong(
        expected, State::claimed, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  void give_up(std::int64_t block) noexcept {
    about_[static_cast<std::size_t>(block)].state.store(State::nothing, std::memory_order_release);
  }
  [[nodiscard]] PackedPlace place(std::int64_t block) noexcept;
  /// The block is packed; of `about` its sums are kept.
  void publish(std::int64_t block, const PackedRows& about) noexcept;
  /// The finer image of a row; null while its block is not ready.
  [[nodiscard]] const std::byte* finer(std::int64_t row) const noexcept {
    return is_ready(row / block_) ? finer_.data() + row * finer_bytes_ : nullptr;
  }
  [[nodiscard]] std::int64_t finer_bytes() const noexcept { return finer_bytes_; }
  /// A block that is ready.
  [[nodiscard]] PackedRows rows(std::int64_t block) const noexcept;

 private:
  enum class State : std::uint8_t { nothing, claimed, ready };
  struct About {
    std::atomic<State> state{State::nothing};
    double typical_norm = 0;
    double least_rho = 0;
    double least_kappa = 0;
  };

  Screen screen_;
  std::int64_t block_;
  std::int64_t blocks_;
  std::int64_t row_bytes_;
  std::int64_t finer_bytes_;  // of a row; 0: there are no finer images
  std::uint64_t bytes_;
  core::AlignedArray<std::byte> panels_;
  core::AlignedArray<float> start_;        // of float32 and bfloat16
  core::AlignedArray<std::int32_t> base_;  // of int8
  core::AlignedArray<float> rho_;
  core::AlignedArray<float> kappa_;
  core::AlignedArray<std::byte> finer_;
  std::unique_ptr<About[]> about_;
  std::atomic<std::int64_t> ready_{0};
};

}  // namespace vicinal::cpu

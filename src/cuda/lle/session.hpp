// One embedding on the device, behind the functions of plugin/abi/lle.hpp: the blocks of all rows, and of the piece at
// hand its blocks, its factor and the two sets of vectors that are iterated.
#pragma once

#include <memory>
#include <optional>

#include "cuda/base/session.hpp"
#include "cuda/lle/factor/front.hpp"
#include "cuda/lle/tall.hpp"
#include "plugin/abi/lle.hpp"

namespace vicinal::cuda::lle {

class LleSession {
 public:
  /// Makes the blocks of all rows. Throws `bad_data` naming the row whose weights are not determined, `over_memory`
  /// where the device has no room.
  LleSession(Session& session, const Host& host, plugin::LleTask& task);
  LleSession(const LleSession&) = delete;
  LleSession& operator=(const LleSession&) = delete;

  [[nodiscard]] Session& session() const { return session_; }
  /// Takes a piece, instead of the one before.
  void take(plugin::LleTaken& piece);
  /// Its blocks, to host memory.
  void fetch(const plugin::LleBlocks& blocks) const;
  /// Dissects parts of its points.
  void dissect(const Host& host, plugin::LleParts& parts) const;
  /// Factors its M, or that less a shift, in the place of the factor before.
  void factor(const Host& host, plugin::LleFactor& task);
  void step(const Host& host, const plugin::LleStep& step);

 private:
  Session& session_;
  const Engine& engine_;
  std::int64_t widest_;  // set of vectors that is solved for
  DeviceBlocks all_;
  DeviceBlocks piece_;
  DeviceIncidence incidence_;
  std::unique_ptr<FrontFactor> factor_;
  DeviceVectors sets_[2];
};

/// Bytes of device memory an embedding takes until its pieces are factored. Throws `over_memory` where they are not to
/// be had.
std::uint64_t lle_bytes(const Session& session, const plugin::LleTask& task);
/// The most columns an embedding may have on the device.
std::int64_t lle_widest(const Session& session);

}  // namespace vicinal::cuda::lle

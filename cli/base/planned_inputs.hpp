// The memory of a command: one plan for its inputs and its operation, made before more than headers is read (contract
// clause 7). --explain shows it, a limit that it exceeds is refused with it, and the operation gets what it leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/common_options.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

/// Bytes of inputs that are not read yet, by their headers; of text by a count of its lines. Pages of mapped files
/// count where the user has set a limit, or asks for the plan: without that they do not, as the system takes them back
/// where it needs them. Where no limit is set, and files are small beside what is free, nothing is looked at.
class PlannedInputs {
 public:
  PlannedInputs(const Runtime& runtime, const CommonOptions& common);

  /// A table to read, after those before it; its shape as a view that plans may be made of, but whose values are one
  /// and the same element. Of one that is mapped as it lies, this process reads one of `shares` parts.
  TableView add_table(const std::string& file, const ReadOptions& reading, int shares = 1);
  /// What a file holds, looked at with what a process takes in any case.
  [[nodiscard]] FileInfo info(const std::string& file, const ReadOptions& reading = {}) const;
  /// What the command runs in.
  [[nodiscard]] const Context& context() const noexcept { return runtime_->ctx; }
  /// What headers and names of columns are looked at with.
  [[nodiscard]] Context to_look() const;
  /// Labels: one a line, an array, or a column of delimited text.
  void add_labels(const std::string& file, const std::string& column = {});
  /// A map of polygons, by its size: GDAL reads it whole, and what it takes for a feature depends on the format. So
  /// this is counted only where a limit is set or the plan asked for. `is_copied`: it is part of what is written by
  /// GDAL. `columns`: whose values are read or carried to it.
  void add_map(const std::string& file, bool is_copied, std::int64_t columns);
  /// Bytes that stay while the operation runs: what inputs are converted to.
  void add(std::uint64_t bytes) { held_ += bytes; }
  /// Inputs whose shapes their headers do not say: the plan is made when they are read.
  void add_unknown() noexcept { known_ = false; }

  /// Makes the plan of the operation, bytes, where it is needed and the shapes are known, in the context that the
  /// operation gets: its limit is what the inputs leave. Throws `over_memory` with a number of bytes that is enough for
  /// the whole command, unless --explain asks for the plan, which `total` then says.
  [[nodiscard]] Context fit(std::string_view job, const std::function<std::uint64_t(const Context& rest)>& operation);
  /// What inputs are read with where the plan depends on their rows: its limit is at least what a process takes in any
  /// case, and `fit` and `require` tell the rest. Throws as `fit` does where they do not fit that; `operation` is then
  /// a plan by their shapes alone, with which the operation runs, if slower.
  [[nodiscard]] Context to_plan_from(std::string_view job,
                                     const std::function<std::uint64_t(const Context& rest)>& operation) const;
  /// What the inputs leave to the operation.
  [[nodiscard]] Context rest() const;
  /// Bytes of the whole command, whose operation takes `operation`, or what `fit` planned for it from shapes alone.
  [[nodiscard]] std::uint64_t total(std::uint64_t operation) const noexcept;
  /// Throws as `fit` does, where a limit is planned for.
  void require(std::string_view job, std::uint64_t operation) const;

 private:
  [[nodiscard]] Context limited_to(std::uint64_t bytes) const;

  const Runtime* runtime_;
  const CommonOptions* common_;
  bool strict_;                ///< a limit is set, or the plan is asked for: pages of mapped files count
  bool needed_;                ///< a plan is made
  bool known_ = true;          ///< all shapes are
  std::uint64_t held_ = 0;     ///< while the operation runs
  std::uint64_t reading_ = 0;  ///< the most while inputs are read
  std::uint64_t planned_ = 0;  ///< for the operation, by `fit`
};

}  // namespace vicinal::cli

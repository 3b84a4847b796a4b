// What the commands of density clustering do alike: planning and reading before they compute, and what they write and
// tell of clusters afterwards.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/output.hpp"
#include "density/cluster_output.hpp"
#include "density/density_command.hpp"
#include "report/density.hpp"

namespace vicinal::cli {

/// What is planned before more than headers is read.
struct DensityPlan {
  std::string job;                                                       ///< the command's name
  std::function<Plan(const Context& left, const TableView& rows)> plan;  ///< with all of its memory but bytes_after
  std::function<void(PlannedInputs& inputs, const TableView& rows)> add = nullptr;  ///< inputs beside table and labels
};

/// Rows to work on, and a context with the memory that they leave.
struct PlannedRows {
  Context rest;
  DensityRows rows;
};

/// Nothing if --explain asks for the plan, which is then printed.
std::optional<PlannedRows> read_planned(const DensityCommand& command, const Runtime& runtime, const DensityPlan& plan);

/// Clusters, borrowed.
struct DensityOutcome {
  std::string command;
  const std::vector<std::int64_t>* labels = nullptr;
  const std::vector<std::int64_t>* sizes = nullptr;
  std::int64_t noise = 0;
  const Plan* plan = nullptr;
  std::vector<RowValues> values;         ///< of the output, beside the labels
  report::DensityReport page = {};       ///< what the command alone knows of its report
  Json told = Json::object();            ///< what it alone has in --json
  std::string counts = {};               ///< what it alone counts: "12 core rows"
  std::function<void()> save = nullptr;  ///< writes a model
};

/// Writes and tells an outcome that took from `start` until now.
void deliver(const DensityCommand& command, const Runtime& runtime, const DensityRows& rows, DensityOutcome outcome,
             std::chrono::steady_clock::time_point start);

}  // namespace vicinal::cli

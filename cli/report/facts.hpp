// What every report says at its top: figures, and the facts of what was run.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "vicinal/graph.hpp"
#include "vicinal/table.hpp"

namespace vicinal::cli::report {

/// A name and its value in a list of facts; escaped here. `wide` ones take a line of their own.
std::string fact(const std::string& name, const std::string& value, bool wide = false);
/// A value, already escaped, over its name.
std::string figure(const std::string& value, const std::string& name);
/// The facts of a clustering of a table: file, shape, what was asked for (name and value), and how it ran.
std::string clustering_facts(const std::string& file, const TableView& table,
                             std::span<const std::pair<std::string, std::string>> how, const Plan& plan);

}  // namespace vicinal::cli::report

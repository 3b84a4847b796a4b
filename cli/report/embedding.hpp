// The report of `vicinal lle`: one page with the embedding, the table beside it where that has three columns, how far
// it can be trusted, eigenvalues, conditions and pieces.
#pragma once

#include <string>

#include "lle/output.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli::report {

/// One embedding with its quality; everything is borrowed.
struct EmbeddingReport {
  std::string file;
  const TableView* table = nullptr;
  const TableView* parameters = nullptr;  ///< may be null; its first column colors rows
  const Labels* labels = nullptr;         ///< may be null; colors rows instead
  const EmbeddedRows* rows = nullptr;
  double seconds = 0;
};

std::string render(const EmbeddingReport& report);

}  // namespace vicinal::cli::report

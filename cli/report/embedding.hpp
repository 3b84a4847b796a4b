// The report of `vicinal lle`: one page with the embedding, the table beside it where that has three columns, the
// eigenvalues and what is left of the true parameters.
#pragma once

#include <string>

#include "vicinal/lle.hpp"
#include "vicinal/table.hpp"
#include "vicinal/vote.hpp"

namespace vicinal::cli::report {

/// One embedding; everything is borrowed.
struct EmbeddingReport {
  std::string file;
  const TableView* table = nullptr;
  const TableView* parameters = nullptr;  ///< may be null; its first column colors rows
  const Labels* labels = nullptr;         ///< may be null
  const Lle* found = nullptr;
  double seconds = 0;
};

std::string render(const EmbeddingReport& report);

/// Share of the variance of the parameters that no affine map of the embedding gives, of the first piece's rows. 0: all
/// of it is there.
double affine_residual(const TableView& parameters, const Lle& found);

}  // namespace vicinal::cli::report

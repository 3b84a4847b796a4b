// The preparation of columns within a k-means model, an .npz: its text as bytes, beside the centres.
#pragma once

#include <optional>
#include <string>

#include "preparation.hpp"
#include "vicinal/io.hpp"

namespace vicinal::cli {

inline constexpr char kPreparationArray[] = "preparation";

/// That of the rows that a model was made of, for centres of d columns; none where columns were left as they are.
/// Throws `bad_data` naming the file where it is none.
std::optional<Preparation> preparation_in(const Context& ctx, const std::string& model, std::int64_t d);

/// How a table is read whose columns are like those of the fitted table: which of them hold text.
ReadOptions reading_like(const Context& ctx, const std::string& file, ReadOptions reading,
                         const Preparation& preparation);

}  // namespace vicinal::cli

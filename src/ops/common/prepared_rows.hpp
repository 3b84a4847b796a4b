// Rows given to a model as the rows that it was made of, and how they are compared.
#pragma once

#include <cstdint>
#include <string>

#include "core/memory.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal::ops {

/// Calls answer(ctx, view) with the rows prepared, and a context whose memory limit is what they leave of the caller's.
/// `rows` is a Table or a TableView; `name` stands for it in errors.
template <class Rows, class Answer>
auto with_prepared(const Context& ctx, const Preparation& preparation, const Rows& rows, const std::string& name,
                   const Answer& answer) {
  const Table prepared = preparation.apply(ctx, rows, name);
  if (!preparation.changes_rows()) return answer(ctx, prepared.view);
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(prepared.view.rows()) * static_cast<std::uint64_t>(prepared.view.cols()) * 8;
  return answer(core::beside(ctx, bytes), prepared.view);
}

}  // namespace vicinal::ops

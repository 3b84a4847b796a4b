// Which screens a search climbs through, coarse and quick to fine and slow, and how each centers and scales the table.
#pragma once

#include <span>
#include <vector>

#include "backend/nearest.hpp"
#include "cpu/nearest/screen.hpp"
#include "simd/kernels.hpp"

namespace vicinal::cpu {

/// Whether the metric is an inner product in disguise, of few enough columns for some screen.
bool screen_serves(Metric metric, ScreenType type, std::int64_t d);

/// The types of screens the search uses, from its shapes and whether rows are kept: the one asked for, or every one
/// that pays, coarse to fine (of pruned rows their images come first, as int8); float32 for the papers' products. Empty
/// for methods that compute every key.
std::vector<ScreenType> screen_types(const kernels::NearestTask& task, const SimdKernels& simd);

/// What packed rows of a screen are kept as.
kernels::PackedKind packed_kind(Metric metric, ScreenType type, const SimdKernels& simd);
/// Of the task's screen of that level.
kernels::PackedKind packed_kind(const kernels::NearestTask& task, const std::vector<ScreenType>& types,
                                std::size_t level, const SimdKernels& simd);

ScreenKind kind_of(Metric metric);
/// The center of the floating-point screens [d].
std::vector<double> screen_centre(const kernels::NearestTask& task);

/// The int8 screen of all columns.
Screen byte_screen(const Context& ctx, const kernels::NearestTask& task);

/// The screens themselves, those of rows that the index keeps as they were made; int8 looks at a sample of the table's
/// rows.
std::vector<Screen> make_ladder(const Context& ctx, const kernels::NearestTask& task,
                                const std::vector<ScreenType>& types);

}  // namespace vicinal::cpu

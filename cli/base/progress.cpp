// See progress.hpp.
#include "base/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "base/standard_streams.hpp"

namespace vicinal::cli {
namespace {

constexpr int kBarWidth = 28;

/// Stages that end when nothing changes any more: what they report is a share of the most iterations that they may
/// take.
constexpr std::string_view kStagesOfIterations[] = {"iterate", "pca"};

bool environment_has(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool terminal_speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!environment_has(name)) continue;
    const std::string value = std::getenv(name);
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 0.001) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 0.1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e12)));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

ProgressLine::ProgressLine(std::string_view when) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  active_ = when == "always" || (when == "auto" && terminal);
  color_ = terminal && !environment_has("NO_COLOR");
  unicode_ = terminal_speaks_utf8();
}

std::string ProgressLine::text(double fraction, double now) {
  const int filled = static_cast<int>(fraction * kBarWidth);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) {
    if (unicode_) {
      bar += i < filled ? "━" : "─";
    } else {
      bar += i < filled ? '#' : '.';
    }
  }
  if (color_) bar = "\x1b[36m" + bar + "\x1b[0m";
  std::string line = fmt::format("{:<10} {} {:3.0f} %  {}", stage_, bar, std::floor(fraction * 100),
                                 format_duration(left_.elapsed(now)));
  const std::optional<double> left = left_.show(now);
  if (!left || fraction >= 1) return line;
  const bool ends_early = std::find(std::begin(kStagesOfIterations), std::end(kStagesOfIterations), stage_) !=
                          std::end(kStagesOfIterations);
  return line + fmt::format(", {}{} left", ends_early ? "at most " : "", format_duration(*left));
}

void ProgressLine::show(std::string_view stage, double fraction) {
  if (!active_) return;
  const auto now = Clock::now();
  fraction = fraction >= 0 ? std::min(fraction, 1.0) : 0.0;
  double share = fraction;  // of the work since the stage began
  if (stage == stage_of_range_) {
    fraction = begin_ + fraction * (end_ - begin_);
    share = first_ < 1 ? std::max(0.0, (fraction - first_) / (1 - first_)) : 1.0;
  }
  const bool new_stage = stage != stage_;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (new_stage) {
    stage_ = stage;
    left_.begin(seconds);
  }
  const bool begins = left_.add(seconds, share) || new_stage;
  if (!begins && fraction < 1 && now - last_drawn_ < std::chrono::milliseconds(100)) return;
  last_drawn_ = now;
  drawn_ = true;
  write_stderr("\r\x1b[2K" + text(fraction, seconds));
}

void ProgressLine::set_range(std::string_view stage, double begin, double end) {
  if (stage != stage_of_range_) first_ = begin;
  stage_of_range_ = stage;
  begin_ = begin;
  end_ = end;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  write_stderr("\r\x1b[2K");
  drawn_ = false;
}

}  // namespace vicinal::cli

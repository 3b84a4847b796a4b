// See html.hpp. The content policy forbids what the page promises not to do: requests of any kind, and scripts other
// than the page's own.
#include "report/html.hpp"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>

#include "base/output.hpp"
#include "report/style.hpp"
#include "vicinal/version.hpp"

namespace vicinal::cli::report {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters have no place in HTML, not even escaped.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

std::string shortened(const std::string& text, std::size_t length) {
  if (character_count(text) <= length) return text;
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) continue;
    if (++seen == length) break;
  }
  return text.substr(0, end) + "…";
}

std::string short_number(double value, int digits) {
  const double size = std::fabs(value);
  if (size >= 1000 && size < 999999.5) return format_count(static_cast<std::int64_t>(std::llround(value)));
  std::string text = fmt::format("{:.{}g}", value, digits);
  if (const std::size_t plus = text.find("e+"); plus != std::string::npos) {
    text.erase(plus + 1, text[plus + 2] == '0' ? 2 : 1);
  }
  return text;
}

std::string thin(std::string text) {
  for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at)) text.replace(at, 1, "\u202f");
  return text;
}

std::string count_text(std::int64_t value) {
  return thin(format_count(value));
}

std::string number_text(double value, int digits) {
  return thin(short_number(value, digits));
}

std::string footer(std::string_view sentence) {
  return fmt::format("<footer>vicinal {}.{}{}</footer>\n", VICINAL_VERSION, sentence.empty() ? "" : " ", sentence);
}

namespace {

/// Tables scroll within their cards where these are too narrow for their numbers.
std::string with_scrolled_tables(std::string body) {
  constexpr std::string_view kOpen = "<table",
                             kBegin = "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table\">";
  constexpr std::string_view kClose = "</table>", kEnd = "</div>";
  for (std::size_t at = body.find(kOpen); at != std::string::npos; at = body.find(kOpen, at + kBegin.size() + 1)) {
    body.insert(at, kBegin);
  }
  for (std::size_t at = body.find(kClose); at != std::string::npos; at = body.find(kClose, at + kClose.size())) {
    body.insert(at + kClose.size(), kEnd);
  }
  return body;
}

}  // namespace

std::string page(const std::string& title, const std::string& body, const Script& script) {
  const std::string allowed =
      script.text.empty() ? std::string() : fmt::format("; script-src 'sha256-{}'", script.sha256);
  const std::string run = script.text.empty() ? std::string() : fmt::format("<script>{}</script>\n", script.text);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'{}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n{}</body>\n</html>\n",
      allowed, escape(title), kColors, kDrawn, kStyle, with_scrolled_tables(body), run);
}

std::string svg_rect(double x, double y, double width, double height, std::string_view style_class, double opacity) {
  const std::string shade = opacity < 1 ? fmt::format(" fill-opacity=\"{:.3f}\"", opacity) : std::string();
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" class=\"{}\"{}/>", x,
                     y, width, height, style_class, shade);
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view style_class, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>", x, y, anchor,
                     style_class, escape(text));
}

std::string svg(double width, double height, std::string_view label, const std::string& shapes) {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" style=\"max-width:{0:.0f}px\" role=\"img\" aria-label=\"{2}\">{3}</svg>\n",
      width, height, escape(label), shapes);
}

}  // namespace vicinal::cli::report

// HTML and SVG as text: escaping, and the few shapes that the pages draw. Everything that comes from a file or a
// command line goes through `escape`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vicinal::cli::report {

/// Safe in text and in attributes in double quotes.
std::string escape(std::string_view text);
/// At most `length` characters (not bytes), the last a dot-dot-dot when something was cut off; not yet escaped.
std::string shortened(const std::string& text, std::size_t length);
/// Characters, not bytes, of UTF-8 text.
std::size_t character_count(std::string_view text);

/// A number as people read it, of about `digits` digits: "15 564", "0.8569", "2.54e10".
std::string short_number(double value, int digits = 4);

/// The text with narrow no-break spaces instead of spaces: a number, or a number and its unit.
std::string thin(std::string text);
/// 1234567 as "1 234 567", which no line breaks.
std::string count_text(std::int64_t value);
/// `short_number`, which no line breaks.
std::string number_text(double value, int digits = 4);

/// Which version made the page, and what it promises: a sentence, or nothing.
std::string footer(std::string_view sentence = {});
/// A script of the command's own, and the SHA-256 of its text in base64, by which the page's content policy allows it.
struct Script {
  std::string_view text;
  std::string_view sha256;
};

/// A whole page: no request to anywhere, and no script but the one given.
std::string page(const std::string& title, const std::string& body, const Script& script = {});

/// <rect>; `style_class` names a rule of the page's style sheet, `opacity` in [0, 1].
std::string svg_rect(double x, double y, double width, double height, std::string_view style_class, double opacity = 1);
/// <text>; `anchor` is start, middle or end.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view style_class, std::string_view text);
/// <svg> that is as wide as its place and at most `width` pixels; `label` says what it shows to who cannot see it.
std::string svg(double width, double height, std::string_view label, const std::string& shapes);

}  // namespace vicinal::cli::report

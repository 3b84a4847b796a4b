// What a subcommand says: data on stdout, words for a person on stderr, JSON when asked for.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/common_options.hpp"
#include "vicinal/graph.hpp"

namespace vicinal::cli {

/// Keeps the order in which fields are added, so that people can read it too.
using Json = nlohmann::ordered_json;

/// Thrown when whoever reads stdout has left; the command then ends in silence.
struct PipeClosed {};

/// Writes all of `text` to stdout. Throws `io` when that fails, PipeClosed when nobody reads any more, `cancelled`
/// when a signal ends the wait for whoever reads a pipe.
void write_stdout(std::string_view text);
/// Lines for a person, on stdout: what would drive a terminal is shown as "\x1b", wherever it came from.
void print_text(std::string_view text);
/// One JSON object and a line end.
void print_json(const Json& json);
/// Lines for a person, on stderr, as `print_text` shows them; nothing with --quiet.
void tell(const Runtime& runtime, const CommonOptions& options, std::string_view sentence);

/// Notes on the inputs, each once: printed on stderr when the command ends, and not with --quiet.
void add_note(const std::string& note);
void silence_notes();
bool notes_are_silent();
/// Of a rank that is not to speak: the error that ends it is printed by rank 0.
void silence_errors(bool are_silent);
bool errors_are_silent();
void print_notes();

Json to_json(const Plan& plan);
Json to_json(const SearchStats& stats);
/// Method and where it ran: "fused, avx512 on 2 threads", "direct on cuda:0".
std::string ran_as(const Plan& plan);
/// --explain: the plan as JSON or as lines `name  value`.
void print_plan(const CommonOptions& options, const Plan& plan);

/// Refuses an output path before any work is done: its ending must be one of `endings` (none: any), its folder must be
/// there and be writable, and it must not be a folder itself. An empty path is fine. Where .csv is an ending, so is
/// .csv.gz (.bz2, .xz), and `-`, standard output: lines for a person then go to stderr.
void check_output(const std::string& option, const std::filesystem::path& path,
                  std::initializer_list<std::string_view> endings = {});

/// Whether a result goes into CSV, packed or not.
bool is_csv_output(const std::filesystem::path& path);

/// Lines of text with columns aligned to the right, the first to the left. Control characters in cells are shown.
std::string format_table(const std::vector<std::vector<std::string>>& rows);
/// "1.5 GB", "512 kB" (powers of 1000).
std::string format_bytes(double bytes);
/// 1234567 as "1 234 567".
std::string format_count(std::int64_t value);
/// The shortest text that reads back as the same float64.
std::string format_number(double value);
/// A CSV field, quoted when it must be.
std::string csv_field(const std::string& text);

}  // namespace vicinal::cli

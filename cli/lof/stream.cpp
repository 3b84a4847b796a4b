// See stream.hpp. Lines are scored together, because a search for some thousand rows takes far less than so many
// searches. Where a line of a batch is refused, each half of the batch is asked alone, down to the line: the answers
// are the same however the lines were cut.
#include "lof/stream.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/input.hpp"
#include "base/one_line.hpp"
#include "base/output.hpp"
#include "base/row_names.hpp"
#include "base/standard_streams.hpp"
#include "io/shown.hpp"

namespace vicinal::cli {
namespace {

constexpr std::size_t kLinesAtATime = 4096;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kBytesAtATime = std::size_t{4} << 20;
constexpr std::size_t kReadBytes = std::size_t{1} << 16;
constexpr int kPollMilliseconds = 50;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
const char* const kName = "standard input";

/// Lines of standard input, without their ends.
class LineReader {
 public:
  explicit LineReader(const Context& ctx) : ctx_(ctx) {}

  /// Waits for input. False at its end, once all is handed out.
  bool wait() {
    while (!ended_ && !ready(kPollMilliseconds)) ctx_.check_cancelled();
    ctx_.check_cancelled();
    if (!ended_) read_some();
    return !ended_ || begin_ < buffer_.size();
  }
  /// Whether more can be read at once.
  [[nodiscard]] bool more() const { return !ended_ && ready(0); }

  /// The next whole line, or what is left at the end. One that is too long ends as soon as that is known; `too_long`
  /// then says so, and the rest of it is skipped.
  bool next(std::string& line, bool& too_long) {
    for (;;) {
      const std::size_t end = buffer_.find('\n', begin_);
      const bool whole = end != std::string::npos;
      const std::size_t size = (whole ? end : buffer_.size()) - begin_;
      if (!whole && !ended_ && size <= kLongestLine) return false;
      if (!whole && size == 0) {
        skipping_ = false;
        return false;
      }
      too_long = size > kLongestLine;
      line.assign(buffer_, begin_, too_long ? 0 : size);
      begin_ = whole ? end + 1 : buffer_.size();
      if (skipping_) {  // the rest of a line that was told before
        skipping_ = !whole;
        if (skipping_ && !ended_) return false;
        continue;
      }
      skipping_ = !whole && !ended_;
      return true;
    }
  }

 private:
  static bool ready(int milliseconds) {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, milliseconds) > 0;
  }
  void read_some() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    const ssize_t got = ::read(STDIN_FILENO, buffer_.data() + before, kReadBytes);
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got < 0) throw Error(ErrorCode::io, fmt::format("standard input cannot be read: {}", std::strerror(errno)));
    ended_ = got == 0;
  }

  const Context& ctx_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool ended_ = false;
  bool skipping_ = false;
};

struct Line {
  std::string text;
  std::int64_t number = 0;  ///< from 1
  std::int64_t row = 0;
};

class Scorer {
 public:
  Scorer(const Context& ctx, const LofModel& model, const InputOptions& input, const KnownColumns& known,
         const StreamIds& ids, bool json)
      : ctx_(ctx),
        model_(model),
        known_(known),
        ids_(ids),
        score_name_(name_of(model.fitted.options.score)),
        json_(json),
        reading_(read_options(input)),
        may_have_header_(!input.no_header) {
    if (reading_.delimiter == 0) reading_.delimiter = ',';
    reading_.missing = model.preparation.imputer().filling() != Filling::none;
    reading_.id = ids.column;
  }

  void take(std::string text, bool too_long) {
    ++lines_;
    if (lines_ == 1 && text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    const std::size_t first = text.find_first_not_of(" \t\r");
    const char comment = reading_.comment != 0 ? reading_.comment : '#';
    if (!too_long && (first == std::string::npos || text[0] == '#' || text[0] == comment)) return;
    if (!std::exchange(begun_, true)) {
      const bool named = begin(text);
      write_heading();
      if (named) return;
    }
    const std::int64_t row = rows_++;
    if (too_long) return refuse_at_once(row, fmt::format("is longer than {} bytes", kLongestLine));
    if (text.starts_with(kByteOrderMark)) return refuse_at_once(row, "begins with a byte order mark");
    bytes_ += text.size();
    batch_.push_back({std::move(text), lines_, row});
  }
  [[nodiscard]] bool full() const noexcept { return batch_.size() >= kLinesAtATime || bytes_ >= kBytesAtATime; }

  /// Above all answers, where none was written yet.
  void write_heading() {
    if (!std::exchange(has_heading_, true) && !json_)
      write_stdout(fmt::format("{},{},outlier\n", row_name_, score_name_));
  }
  /// Answers what was taken.
  void flush() {
    if (batch_.empty()) return;
    std::string answers;
    score(batch_, answers);
    batch_.clear();
    bytes_ = 0;
    write_stdout(answers);
  }

  [[nodiscard]] std::string summary() const {
    return fmt::format("{} rows scored, {} of them outliers; {} line{} refused", format_count(rows_ - refused_),
                       format_count(outliers_), format_count(refused_), refused_ == 1 ? "" : "s");
  }

 private:
  /// Looks at the first line: whether it names the columns, and where those of text are.
  bool begin(const std::string& first) {
    std::vector<std::string> names;
    if (may_have_header_) names = names_in(first);
    const std::int64_t fields = std::ssize(names_in(first));
    const bool named = reading_.header.value_or(false) || is_header(names);
    if (!named) names.clear();
    reading_.header = false;
    require_same_id(kName, names, reading_.id, ids_.in_table);
    AskedReading asked = asked_reading(kName, {names, fields, false}, std::move(reading_), known_, model_.preparation,
                                       model_.index.cols(), false);
    reading_ = std::move(asked.options);
    const auto to_position = [&](std::string& column, const char* option) {
      const auto found = std::find(names.begin(), names.end(), column);
      if (found != names.end()) column = fmt::format("{}", found - names.begin());
      if (column.empty() || is_position(column)) return;
      throw Error(ErrorCode::invalid_argument,
                  named ? fmt::format("{}: standard input has no column '{}'", option, column)
                        : fmt::format("{}: standard input does not name its columns, so '{}' must be a position",
                                      option, column));
    };
    for (std::string& column : reading_.only) to_position(column, "TRAIN");
    for (std::string& column : reading_.text) to_position(column, "--text");
    for (std::string& column : reading_.drop) to_position(column, "--drop");
    to_position(reading_.id, "--id");
    if (!reading_.id.empty()) row_name_ = "id";
    const std::size_t id = reading_.id.empty() || names.empty() ? names.size() : std::stoull(reading_.id);
    if (id < names.size() && !names[id].empty()) row_name_ = csv_field(names[id]);
    return named;
  }

  /// The fields of a line, as names; none where it cannot be cut into fields.
  [[nodiscard]] std::vector<std::string> names_in(const std::string& line) const {
    ReadOptions options;
    options.delimiter = reading_.delimiter;
    options.decimal = reading_.decimal;
    options.header = true;
    options.find_text = true;
    options.missing = true;
    try {
      return parse_table(ctx_, line + "\n" + line + "\n", kName, options).columns;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data) throw;
      return {};
    }
  }
  /// Whether all of the model's names are there.
  [[nodiscard]] bool is_header(const std::vector<std::string>& names) const {
    const auto& columns = model_.preparation.columns();
    return !columns.empty() && std::all_of(columns.begin(), columns.end(), [&](const Preparation::Column& column) {
      return !column.name.empty() && std::find(names.begin(), names.end(), column.name) != names.end();
    });
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as a batch can be halved
  void score(std::span<const Line> lines, std::string& answers) {
    std::string text;
    for (const Line& line : lines) text.append(line.text).append("\n");
    try {
      Table table = parse_table(ctx_, text, kName, reading_, lines[0].number);
      if (table.view.rows() != static_cast<std::int64_t>(lines.size())) {
        throw Error(ErrorCode::bad_data, "a quote reaches over the end of a line");
      }
      table = model_.preparation.apply(ctx_, std::move(table), kName);
      const RowNames names(table);
      const std::vector<double> scores = novelty(ctx_, model_.index, model_.fitted, table.view);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool outlier = scores[i] > model_.fitted.threshold;
        outliers_ += outlier ? 1 : 0;
        answers += answer(lines[i], name_in(names, lines[i].row, static_cast<std::int64_t>(i)), scores[i], outlier);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_data && error.code() != ErrorCode::invalid_argument) throw;
      if (lines.size() == 1) return refuse(lines[0], error.what(), answers);
      score(lines.first(lines.size() / 2), answers);
      score(lines.last(lines.size() - lines.size() / 2), answers);
    }
  }

  /// What the `at`-th row of a table is called in an answer: its number of all rows, or its id.
  [[nodiscard]] std::string name_in(const RowNames& names, std::int64_t row, std::int64_t at) const {
    if (names.ids() == nullptr) return fmt::format("{}", row);
    return json_ ? Json(names.text(at)).dump(-1, ' ', false, Json::error_handler_t::replace) : names.field(at);
  }
  [[nodiscard]] std::string answer(const Line& line, const std::string& name, double score, bool outlier) const {
    if (!json_) return fmt::format("{},{},{}\n", name, score, outlier ? 1 : 0);
    const std::string number = std::isfinite(score) ? fmt::format("{}", score) : fmt::format("\"{}\"", score);
    return fmt::format("{{\"row\":{},\"line\":{},\"{}\":{},\"outlier\":{}}}\n", name, line.number, score_name_, number,
                       outlier);
  }
  void refuse(const Line& line, std::string why, std::string& answers) {
    const std::string place = fmt::format("'{}' line {}", kName, line.number);
    if (why.starts_with(place)) why.erase(0, why.find_first_not_of(", ", place.size()));
    why = io::printable(one_line(why));
    write_stderr(fmt::format("vicinal: line {}: {}\n", line.number, why));
    if (json_)
      answers += Json({{"row", line.row}, {"line", line.number}, {"error", why}})
                     .dump(-1, ' ', false, Json::error_handler_t::replace) +
                 "\n";
    ++refused_;
  }
  /// The line that was taken last, after the answers to those before it.
  void refuse_at_once(std::int64_t row, const std::string& why) {
    if (json_) flush();
    std::string answers;
    refuse({{}, lines_, row}, why, answers);
    write_stdout(answers);
  }

  const Context& ctx_;
  const LofModel& model_;
  const KnownColumns& known_;
  StreamIds ids_;
  std::string score_name_;
  bool json_;
  ReadOptions reading_;
  bool may_have_header_;
  bool begun_ = false;
  bool has_heading_ = false;
  std::string row_name_ = "row";
  std::vector<Line> batch_;
  std::size_t bytes_ = 0;
  std::int64_t lines_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t outliers_ = 0;
  std::int64_t refused_ = 0;
};

}  // namespace

void score_stream(const Runtime& runtime, const CommonOptions& common, const InputOptions& input, const LofModel& model,
                  const KnownColumns& known, const StreamIds& ids) {
  LineReader reader(runtime.ctx);
  Scorer scorer(runtime.ctx, model, input, known, ids, common.json);
  if (ids.column.empty()) scorer.write_heading();
  std::string line;
  bool too_long = false;
  while (reader.wait()) {
    while (reader.next(line, too_long)) {
      scorer.take(std::move(line), too_long);
      if (scorer.full()) scorer.flush();
    }
    if (!reader.more()) scorer.flush();
  }
  scorer.write_heading();
  scorer.flush();
  tell(runtime, common, scorer.summary());
}

}  // namespace vicinal::cli

// See parser.hpp.
#include "base/parser.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/one_line.hpp"
#include "base/suggestion.hpp"
#include "vicinal/error.hpp"

namespace vicinal::cli {
namespace {

/// Help that shows defaults in brackets and leaves out what the parser says about itself.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_items_expected_max() > 0 && !option->get_type_name().empty()) text = " " + option->get_type_name();
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& text = option->get_description();
    return option->get_default_str().empty() ? text : text + " [" + option->get_default_str() + "]";
  }
};

bool all(const CLI::App* /*child*/) {
  return true;
}

std::vector<std::string> dashed_names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> names_below(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* child : root.get_subcommands(all)) names.push_back(child->get_name());
  return names;
}

/// What was meant by the first argument, which names no subcommand.
std::string no_subcommand(const CLI::App& root, const std::string& unknown) {
  const std::vector<std::string> names = names_below(root);
  const auto meant = closest_word(unknown, names);
  return meant ? fmt::format("there is no subcommand '{}'; did you mean {}?", unknown, *meant)
               : fmt::format("there is no subcommand '{}'; there are {}", unknown, listed(names));
}

/// What was meant by an argument that a subcommand does not know; an option of its siblings is named as theirs.
std::string not_expected(const CLI::App& root, const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto option = std::find_if(arguments.begin(), arguments.end(),
                                   [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  if (option == arguments.end()) {
    return fmt::format("'{}' is one argument too many", arguments.empty() ? "" : arguments.front());
  }
  const std::string word = option->substr(0, option->find('='));
  std::vector<std::string> own;
  for (const CLI::Option* known : app.get_options()) {
    for (const std::string& name : dashed_names_of(*known)) own.push_back(name);
  }
  std::string what = fmt::format("{} has no option {}", app.get_name(), word);
  if (const auto meant = closest_word(word, own)) return fmt::format("{}; did you mean {}?", what, *meant);
  std::vector<std::string> siblings;
  for (const CLI::App* child : root.get_subcommands(all)) {
    if (child->get_option_no_throw(word) != nullptr) siblings.push_back(child->get_name());
  }
  if (!siblings.empty()) what += fmt::format("; {} {} one", listed(siblings), siblings.size() == 1 ? "has" : "have");
  return what;
}

/// An argument without text is most often a variable of the shell that is not set. The parser would pass over it.
void refuse_empty(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.empty()) {
      throw Error(ErrorCode::invalid_argument, i == 1 ? "the first argument is empty"
                                                      : fmt::format("the argument after '{}' is empty", argv[i - 1]));
    }
    if (word.substr(0, 2) == "--" && word.back() == '=') {
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' has no value", word));
    }
  }
}

/// The parser's complaint as one sentence that says where help is.
/// `unknown` is the first argument when it is no option: without a known subcommand, it was meant to be one.
std::string usage_sentence(const CLI::App& root, const CLI::ParseError& error, const std::string& unknown) {
  std::string path = root.get_name();
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    path += " " + app->get_name();
  }
  std::string what = one_line(error.what());
  if (app == &root && !unknown.empty()) {
    what = no_subcommand(root, unknown);
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    what = not_expected(root, *app, root.remaining(true));
  }
  if (what.size() > 1 && what.back() == '.') what.pop_back();
  return fmt::format("{} (see `{} --help`)", what, path);
}

}  // namespace

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::group(const std::string& name) {
  option_->group(name);
  return *this;
}

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

Option& Option::repeatable() {
  option_->take_all()->allow_extra_args(false);
  return *this;
}

Option& Option::between(std::int64_t least, std::int64_t most) {
  // Without its own words, which --help would show as part of the option's type.
  CLI::Range range(least, most);
  range.description("");
  option_->check(range);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

bool Option::given() const {
  return option_->count() > 0;
}

std::string Option::name() const {
  return option_->get_name();
}

std::vector<std::string> Option::dashed_names() const {
  return dashed_names_of(*option_);
}

std::string Option::type_name() const {
  return option_->get_type_name();
}

std::string Option::description() const {
  return option_->get_description();
}

bool Option::takes_value() const {
  return option_->get_items_expected_max() > 0;
}

Parser Parser::add_subcommand(const std::string& name, const std::string& description) const {
  return Parser(app_->add_subcommand(name, description));
}

void Parser::require_subcommand() const {
  app_->require_subcommand(1);
  app_->fallthrough();
}

template <class T>
Option Parser::add_option(const std::string& name, T& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}

template Option Parser::add_option(const std::string&, std::string&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Parser::add_option(const std::string&, int&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option Parser::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Parser::add_option(const std::string&, double&, const std::string&) const;

Option Parser::add_choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                          const std::string& description) const {
  const CLI::Validator one_of(
      [choices](std::string& given) {
        if (std::find(choices.begin(), choices.end(), given) != choices.end()) return std::string();
        return fmt::format("'{}' is not one of {}", given, fmt::join(choices, ", "));
      },
      "");
  return Option(app_->add_option(name, value, description)
                    ->check(one_of)
                    ->type_name(fmt::format("{{{}}}", fmt::join(choices, ",")))
                    ->capture_default_str());
}

Option Parser::add_flag(const std::string& name, bool& value, const std::string& description) const {
  return Option(app_->add_flag(name, value, description));
}

void Parser::add_examples(const std::vector<std::string>& lines) const {
  std::string text = "EXAMPLES";
  for (const std::string& line : lines) text += "\n  " + line;
  app_->footer(text);
}

bool Parser::parsed() const {
  return app_->parsed();
}

std::string Parser::name() const {
  return app_->get_name();
}

std::string Parser::description() const {
  return app_->get_description();
}

std::vector<Parser> Parser::subcommands() const {
  std::vector<Parser> children;
  for (CLI::App* child : app_->get_subcommands(all)) children.emplace_back(child);
  return children;
}

std::vector<Option> Parser::options() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->get_options()) options.emplace_back(option);
  return options;
}

RootParser::RootParser(const std::string& name, const std::string& description, const std::string& version)
    : Parser(nullptr), owner_(std::make_shared<CLI::App>(description, name)) {
  app_ = owner_.get();
  require_subcommand();
  app_->set_version_flag("--version", version, "Print the version and stop");
  app_->set_config("--config", "", "Read options from a TOML file: one [section] per subcommand")->type_name("FILE");
  app_->allow_config_extras(CLI::config_extras_mode::error);
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->get_formatter()->column_width(36);
}

std::optional<int> RootParser::parse(int argc, char** argv) const {
  refuse_empty(argc, argv);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);
    const std::string unknown = argc > 1 && argv[1][0] != '-' ? argv[1] : "";
    throw Error(ErrorCode::invalid_argument, usage_sentence(*app_, error, unknown));
  }
  return std::nullopt;
}

}  // namespace vicinal::cli

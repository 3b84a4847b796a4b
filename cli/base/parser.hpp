// What a subcommand says to the option parser. CLI11 itself, which takes seconds to compile, is seen by parser.cpp
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vicinal::cli {

/// An option, which the parser owns. Whatever changes it gives it back, for the next word about it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  /// What --help calls its value.
  Option& type_name(const std::string& name);
  /// The heading under which --help lists it.
  Option& group(const std::string& name);
  Option& required();
  /// --help shows the value that its variable has now.
  Option& capture_default_str();
  /// One value each time it is given, and it may be given several times.
  Option& repeatable();
  Option& between(std::int64_t least, std::int64_t most);
  Option& excludes(const Option& other);

  bool given() const;
  std::string name() const;
  /// "-k", "--metric"; none of a positional argument.
  std::vector<std::string> dashed_names() const;
  std::string type_name() const;
  std::string description() const;
  bool takes_value() const;

 private:
  CLI::Option* option_;
};

/// The command or a subcommand, which the parser's root owns.
class Parser {
 public:
  explicit Parser(CLI::App* app) : app_(app) {}

  Parser add_subcommand(const std::string& name, const std::string& description) const;
  /// One of its own subcommands must follow, and may leave options to it.
  void require_subcommand() const;
  /// An option that fills `value`: a string, several, a number.
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& description) const;
  /// An option with a fixed set of values, listed by --help and offered by the shell's completion.
  Option add_choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                    const std::string& description) const;
  Option add_flag(const std::string& name, bool& value, const std::string& description) const;
  /// Examples at the end of --help; the tests run them.
  void add_examples(const std::vector<std::string>& lines) const;
  /// Whether the command line named it.
  bool parsed() const;

  std::string name() const;
  std::string description() const;
  std::vector<Parser> subcommands() const;
  std::vector<Option> options() const;

 protected:
  CLI::App* app_;
};

/// The command itself; owns all below it.
class RootParser : public Parser {
 public:
  RootParser(const std::string& name, const std::string& description, const std::string& version);

  /// The exit code, where the command line asked for help or the version only, which are then printed. Throws
  /// `invalid_argument` with a sentence for anything that it does not understand.
  std::optional<int> parse(int argc, char** argv) const;

 private:
  std::shared_ptr<CLI::App> owner_;
};

}  // namespace vicinal::cli

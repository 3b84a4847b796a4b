// `vicinal completion`: a script for a shell, made from the parser's own list of subcommands and options, so that it
// cannot go stale. An option whose type name is a list in braces completes to that list; every other value, and
// every positional argument without a list, completes to files.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/common_options.hpp"
#include "base/output.hpp"
#include "commands.hpp"

namespace vicinal::cli {
namespace {

struct OptionEntry {
  std::vector<std::string> names;  ///< "-k", "--metric"; empty for a positional argument
  std::vector<std::string> choices;
  std::string description;
  bool takes_value = false;
};

struct Node {
  std::vector<std::string> path;  ///< {"bench", "knn"}; empty for the root
  std::string description;
  std::vector<std::string> children;
  std::vector<OptionEntry> options;
};

std::vector<std::string> choices_of(const Option& option) {
  const std::string type = option.type_name();
  const auto open = type.find('{');
  const auto close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice.substr(0, choice.find('[')));
  return choices;
}

void collect(const Parser& app, std::vector<std::string> path, std::vector<Node>& nodes) {
  Node node;
  node.path = path;
  node.description = app.description();
  for (const Parser& child : app.subcommands()) {
    node.children.push_back(child.name());
  }
  for (const Option& option : app.options()) {
    OptionEntry entry;
    entry.names = option.dashed_names();
    entry.choices = choices_of(option);
    entry.description = option.description();
    entry.takes_value = option.takes_value();
    node.options.push_back(entry);
  }
  nodes.push_back(node);
  for (const Parser& child : app.subcommands()) {
    std::vector<std::string> longer = path;
    longer.push_back(child.name());
    collect(child, longer, nodes);
  }
}

/// `text` inside single quotes of a shell.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> words_of(const Node& node) {
  std::vector<std::string> words = node.children;
  for (const OptionEntry& option : node.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
    if (option.names.empty()) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return words;
}

/// Both bash and zsh (through bashcompinit) run this: find the subcommand typed so far, then offer its words.
std::string bash_functions(const std::vector<Node>& nodes) {
  std::string words;
  std::string values;
  for (const Node& node : nodes) {
    const std::string key = fmt::format("{}", fmt::join(node.path, " "));
    words += fmt::format("    {}) words={} ;;\n", shell_quoted(key),
                         shell_quoted(fmt::format("{}", fmt::join(words_of(node), " "))));
    for (const OptionEntry& option : node.options) {
      if (!option.takes_value || option.names.empty()) continue;
      for (const std::string& name : option.names) {
        values += fmt::format("    {}) values={}; takes_value=1 ;;\n", shell_quoted(key + " " + name),
                              shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      }
    }
  }
  std::string known;
  for (const Node& node : nodes) {
    if (!node.path.empty())
      known +=
          fmt::format("{}{}", known.empty() ? "" : "|", shell_quoted(fmt::format("{}", fmt::join(node.path, " "))));
  }
  return fmt::format(R"(_vicinal() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local path="" words="" values="" takes_value=0 next i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${{path:+$path }}${{COMP_WORDS[i]}}"
    case "$next" in
      {}) path="$next" ;;
    esac
  done
  case "$path $previous" in
{}  esac
  if [ "$takes_value" = 1 ]; then
    if [ -n "$values" ]; then
      COMPREPLY=($(compgen -W "$values" -- "$current"))
    else
      COMPREPLY=($(compgen -f -- "$current"))
    fi
    return
  fi
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$path" ] && [ "${{current#-}}" = "$current" ]; then
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}}
)",
                     known, values, words);
}

std::string fish_script(const std::vector<Node>& nodes) {
  std::string text = "# fish completion for vicinal\ncomplete -c vicinal -f\n";
  for (const Node& node : nodes) {
    std::string condition = "__fish_use_subcommand";
    if (!node.path.empty()) condition = "__fish_seen_subcommand_from " + node.path.back();
    const std::string head = fmt::format("complete -c vicinal -n {}", shell_quoted(condition));
    for (const std::string& child : node.children) {
      const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node& other) {
        return other.path.size() == node.path.size() + 1 && other.path.back() == child;
      });
      text += fmt::format("{} -a {} -d {}\n", head, child, shell_quoted(found->description));
    }
    if (!node.path.empty() && node.children.empty()) text += head + " -F\n";
    for (const OptionEntry& option : node.options) {
      if (option.names.empty()) {
        if (!option.choices.empty())
          text += fmt::format("{} -a {}\n", head, shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
        continue;
      }
      text += head;
      for (const std::string& name : option.names) {
        text += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices.empty()) {
        text += fmt::format(" -x -a {}", shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      } else if (option.takes_value) {
        text += " -r -F";
      }
      text += fmt::format(" -d {}\n", shell_quoted(option.description));
    }
  }
  return text;
}

/// The script for "bash", "zsh" or "fish".
std::string completion_script(const Parser& root, const std::string& shell) {
  std::vector<Node> nodes;
  collect(root, {}, nodes);
  if (shell == "fish") return fish_script(nodes);
  if (shell == "zsh") {
    return "#compdef vicinal\nautoload -U +X bashcompinit && bashcompinit\n" + bash_functions(nodes) +
           "complete -o filenames -F _vicinal vicinal\n";
  }
  return "# bash completion for vicinal\n" + bash_functions(nodes) + "complete -o filenames -F _vicinal vicinal\n";
}

}  // namespace

Command add_completion(const Parser& root) {
  struct Options {
    std::string shell = "bash";
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  const Parser app = root.add_subcommand("completion", "Print a completion script for a shell");
  app.add_choice("SHELL", options->shell, {"bash", "zsh", "fish"}, "Shell");
  app.add_flag("--json", options->json, "Print one JSON object on stdout: {\"shell\", \"script\"}");
  app.add_examples({"vicinal completion bash > vicinal.bash && . ./vicinal.bash", "vicinal completion fish"});
  return {app,
          [options, root] {
            const std::string script = completion_script(root, options->shell);
            if (options->json) {
              print_json({{"shell", options->shell}, {"script", script}});
            } else {
              write_stdout(script);
            }
          },
          &options->json};
}

}  // namespace vicinal::cli

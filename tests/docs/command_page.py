"""Writes docs/command.md from the help of the command: every option by group, and the commands that have it. With --check
it writes nothing and fails where the page says something else.

Usage: command_page.py --command VICINAL [--check].
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/command.md"
HEAD = """# The command, option by option

<!-- Written by tests/docs/command_page.py from `vicinal COMMAND --help`; a test compares. -->

`vicinal COMMAND --help` prints the options of one command, with examples. This page lists the options of all commands,
by subject. The text in brackets is the default. An option that means something else in another command has another row.

## Commands

| command | what it does |
| --- | --- |
"""
# An option with its value, and what it does; one space is between them where the option is as wide as its column.
ENTRY = re.compile(r"  (-\S+(?: [A-Z{]\S*)?|\S+(?: [A-Z{]\S*)?)(?: +(\S.*))?$")


def help_of(command, *words):
    return subprocess.run([command, *words, "--help"], check=True, text=True, capture_output=True, timeout=60).stdout


def sections(text):
    """(heading, [(option, description)]) of a help text; a description may stand on the line below its option."""
    heading, entries, found = None, [], []
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z].*:|EXAMPLES", line):
            heading, entries = line.rstrip(":"), []
            found.append((heading, entries))
        elif not line.strip() or heading == "EXAMPLES":
            continue
        elif heading and line.startswith("   ") and entries and not entries[-1][1]:
            entries[-1] = (entries[-1][0], line.strip())
        elif heading and (entry := ENTRY.fullmatch(line)):
            entries.append((entry.group(1), entry.group(2) or ""))
    return found


def cell(text):
    """Text as a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def page(command):
    root = dict(sections(help_of(command)))
    commands = [(name, about) for name, about in root["Subcommands"]]
    lines = [HEAD.rstrip("\n")]
    lines += [f"| `{name}` | {cell(about)} |" for name, about in commands]
    groups = collections.OrderedDict()
    for name, _ in commands:
        for heading, entries in sections(help_of(command, name)):
            rows = groups.setdefault(heading, collections.OrderedDict())
            for option, about in entries:
                rows.setdefault((option, about), []).append(name)
    lines += ["", "## Options", ""]
    every = [name for name, _ in commands]
    for heading, rows in groups.items():
        if not rows:
            continue
        lines += [f"### {heading}", "", "| option | what it does | commands |", "| --- | --- | --- |"]
        for (option, about), names in sorted(rows.items(), key=lambda row: row[0][0].lstrip("-").lower()):
            others = [name for name in every if name not in names]
            where = ("all but " if 0 < len(others) < 4 else "") + ", ".join(f"`{name}`" for name in (
                others if len(others) < 4 else names))
            lines.append(f"| `{option.replace('|', chr(92) + '|')}` | {cell(about)} | {where or 'all'} |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wanted = page(arguments.command)
    if not arguments.check:
        PAGE.write_text(wanted)
        return 0
    if PAGE.exists() and PAGE.read_text() == wanted:
        return 0
    print("docs/command.md differs from the help of the command: run\n"
          "  python3 tests/docs/command_page.py --command build/dev/cli/vicinal")
    return 1


if __name__ == "__main__":
    sys.exit(main())

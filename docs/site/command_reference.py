"""The reference of the command: what `vicinal COMMAND --help` prints, a section for each command."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/docs"))
import command_page

HEAD = """# The command

Each section is what `vicinal COMMAND --help` prints. [Options by subject](../command.md) has the same options, side by
side for all commands. Text in brackets is the default.

```text
{help}
```
"""


def write(command, folder):
    root = command_page.help_of(command).rstrip()
    parts = [HEAD.format(help=root)]
    for name, about in dict(command_page.sections(root + "\n"))["Subcommands"]:
        parts.append(f"## {name}\n\n{about[0].upper() + about[1:]}\n\n```text\n"
                     f"{command_page.help_of(command, name).rstrip()}\n```\n")
    (folder / "command.md").write_text("\n".join(parts))

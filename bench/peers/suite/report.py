"""The result of a run: its head, its table, whether it is complete, and its comparison with a stored one."""

import datetime
import json
import math
import os
import pathlib
import platform
import sys

from environments import PEERS

sys.path.insert(0, str(PEERS))
import result as shared  # noqa: E402

RESULTS = PEERS.parent / "results"


def machine_kind():
    """The short name of this kind of machine in the names of results, as xeon2 or epyc2: vendor's family and cores."""
    name = shared.processor().lower()
    families = ("xeon", "epyc", "ryzen", "core", "apple", "neoverse", "graviton")
    family = next((word for word in families if word in name), None)
    return f"{family or platform.machine().replace('_', '-')}{os.cpu_count()}"


def head(options, size, version):
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"command": "bench peers", "size": size, "machine": shared.processor(), "machine_kind": options.machine,
            "cores": os.cpu_count(), "threads": options.threads, "load": os.getloadavg()[0],
            "date": now.isoformat(timespec="seconds"), "commit": options.commit, "version": version,
            "python": platform.python_version()}


def finish(line):
    """Adds the ratio. A line without a ratio and an exactness figure gets a reason."""
    seconds, ours = line.get("seconds"), line.get("our_seconds")
    if "reason" in line:
        return line
    if not all(isinstance(value, (int, float)) and math.isfinite(value) and value > 0 for value in (seconds, ours)):
        return {**line, "reason": "its script measured no time"}
    if not line.get("exactness") or not math.isfinite(line.get("share", math.nan)):
        return {**line, "reason": "its script compared no answers"}
    return {**line, "ratio": seconds / ours}


def is_complete(line):
    return "ratio" in line and bool(line.get("exactness")) and "reason" not in line


def columns(lines):
    """Text with columns as wide as their widest cell; numbers of seconds and ratios to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    right = {"theirs s", "ours s", "ratio", "ratio then", "ratio now", "change"}
    return "\n".join("  ".join(cell.rjust(width) if lines[0][i] in right else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines) + "\n"


def seconds_text(value):
    return f"{value:.3f}" if value >= 0.1 else f"{value:.3g}"


def place(row, line):
    return row["row"] + (f" ({line['case']})" if line.get("case") else "")


def table(rows):
    """The lines of all rows, ours first in each, then the reasons."""
    lines = [("row", "library", "version", "theirs s", "ours s", "ratio", "exactness")]
    reasons = ""
    for row in rows:
        own = row.get("vicinal")
        if own:
            wrong = " WRONG" if own.get("exact") is False else ""
            seconds = seconds_text(own["seconds"]) if own.get("seconds") else ""
            lines.append((row["row"], "vicinal", row["version"], "", seconds, "", own["exactness"] + wrong))
        for line in row["peers"]:
            if is_complete(line):
                lines.append((place(row, line), line["peer"], str(line.get("version") or "?"),
                              seconds_text(line["seconds"]), seconds_text(line["our_seconds"]),
                              f"{line['ratio']:.2f}", line["exactness"]))
            else:
                ratio = f"> {line['at_least']:.2f}" if "at_least" in line else "-"
                lines.append((place(row, line), line["peer"], "", "", "", ratio, "not compared"))
                reasons += f"{place(row, line)}, {line['peer']}: {line['reason']}\n"
    return columns(lines) + ("\nNot compared, and why:\n" + reasons if reasons else "")


def stored(folder, kind, size):
    """The newest run of this kind of machine and size: (path, result), or None."""
    found = []
    for path in pathlib.Path(folder).glob(f"bench-{kind}-*.json"):
        try:
            told = json.loads(path.read_text())
            # A kind may begin with the name of another one.
            if told["size"] == size and told["machine_kind"] == kind:
                found.append((told["date"], path, told))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return max(found, key=lambda one: one[0])[1:] if found else None


def ratios(told):
    return {(place(row, line), line["peer"]): line["ratio"] for row in told["rows"] for line in row["peers"]
            if is_complete(line)}


def comparison(before, now):
    """(text, JSON) of the ratios of two runs. A ratio that falls says that we got slower next to the peer, or the peer
    faster."""
    old, new = ratios(before), ratios(now)
    lines, told = [("row", "library", "ratio then", "ratio now", "change")], []
    asked = {row["row"] for row in now["rows"]}
    for key in [*new, *(key for key in old if key not in new and key[0].split(" (")[0] in asked)]:
        then, later = old.get(key), new.get(key)
        change = later / then - 1 if then and later else None
        lines.append((*key, "-" if then is None else f"{then:.2f}", "-" if later is None else f"{later:.2f}",
                      "-" if change is None else f"{100 * change:+.0f} %"))
        told.append({"row": key[0], "peer": key[1], "then": then, "now": later, "change": change})
    return columns(lines), told


def result_name(told):
    return f"bench-{told['machine_kind']}-{told['date'][:10]}-{told['commit']}.json"

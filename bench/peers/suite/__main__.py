"""The program behind `vicinal-bench peers`, which starts it with --bench: runs rows of catalog.py, each paired with
vicinal in one process or in turns, and prints one table.

Exit codes are those of the command: 0; 1 where an answer of vicinal is wrong or, with --verify, where a line of the
table has no ratio and no exactness figure; 2 for a wrong argument; 3 where nothing could be compared; 5 where that is
because there is no CUDA device; 130 where it was interrupted.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import adapters
import catalog
import command
import report
from environments import ENVIRONMENTS, Environments, Unavailable

INTERNAL, USAGE, DATA, DEVICE, INTERRUPTED = 1, 2, 3, 5, 130
CODES = {INTERNAL: "internal", USAGE: "invalid_argument", DATA: "io", DEVICE: "device_unavailable",
         INTERRUPTED: "cancelled"}


class Failure(Exception):
    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code, self.printed = code, False

    def about(self):
        return {"code": CODES[self.code], "message": str(self)}


class Words(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(USAGE, message)


def parse(words):
    parser = Words(prog="vicinal-bench peers", add_help=False)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--no-install", action="store_true")
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--libraries", default="")
    parser.add_argument("--timeout", type=float, default=3600)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--machine", default="")
    parser.add_argument("--commit", default="")
    parser.add_argument("--compare", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args(words)
    if options.quick and options.short:
        raise Failure(USAGE, "--quick: it excludes --short")
    if not options.timeout > 0:
        raise Failure(USAGE, f"--timeout: {options.timeout:g} is not above 0")
    options.threads = options.threads or len(os.sched_getaffinity(0))
    options.machine = options.machine or report.machine_kind()
    options.commit = options.commit or commit()
    options.size = "quick" if options.quick else "short" if options.short else "full"
    options.pythons = {}
    for one in options.python:
        name, equals, path = one.partition("=")
        if equals and name not in ENVIRONMENTS:
            raise Failure(USAGE, f"--python: there is no environment '{name}'; there are: {', '.join(ENVIRONMENTS)}")
        options.pythons[name if equals else ""] = path if equals else one
    return options


def commit():
    words = ["git", "-C", command.SOURCE, "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(words, capture_output=True, text=True).stdout.strip() or "unknown"
    except OSError:  # there is no git
        return "unknown"


def chosen(options):
    try:
        rows = catalog.chosen(options.rows)
    except KeyError as name:
        known = ", ".join([*catalog.GROUPS, *(row.name for row in catalog.ROWS)])
        raise Failure(USAGE, f"there is no row or group {name}; there are: {known}") from None
    libraries = options.libraries.split(",") if options.libraries else []
    known = sorted({peer for row in catalog.ROWS for peer in row.peers})
    for name in libraries:
        if name not in known:
            raise Failure(USAGE, f"--libraries: '{name}' is not one of {', '.join(known)}")
    if libraries:
        rows = [dataclasses.replace(row, peers=kept) for row in rows
                if (kept := tuple(peer for peer in row.peers if peer in libraries))]
        if not rows:
            raise Failure(USAGE, f"--libraries: none of these rows has {options.libraries}")
    if options.size == "short":
        rows = [row for row in rows if row.short is not None]
        if not rows:
            raise Failure(USAGE, "--short: none of these rows has a short size")
    return rows


def listing(options):
    rows = chosen(options)
    if options.json:
        print(json.dumps({"rows": [{"row": row.name, "group": row.group, "about": row.about, "peers": list(row.peers),
                                    "environment": ENVIRONMENTS[row.environment].folder, "short": row.short is not None}
                                   for row in rows]}, indent=2))
        return
    lines = [("row", "group", "short", "what", "libraries")]
    lines += [(row.name, row.group, "yes" if row.short is not None else "", row.about, ", ".join(row.peers))
              for row in rows]
    print(report.columns(lines), end="")


def run_row(row, options, builds, environments, version):
    """What a row gives, complete: every library of the row has a line, with figures or with a reason."""
    about = {"row": row.name, "group": row.group, "about": row.about, "version": version,
             "words": catalog.words(row, options.size)}
    started, own, lines, fault = time.perf_counter(), None, [], None
    try:
        fault = command.missing_need(row, options.size) or (command.missing_device() if row.group == "gpu" else None)
        if fault is None:
            python = environments.python(row.environment)
            command.prepare(row, options.size, python, options.work)
            with tempfile.TemporaryDirectory(prefix="vicinal-peers-") as folder:
                run = command.Run(row, options.size, options, builds, python, options.work, pathlib.Path(folder))
                told, fault = run.result()
            if told is not None:
                own, lines = adapters.ADAPTERS[row.script](told)
    except (Unavailable, OSError) as why:
        fault = str(why)
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        fault = fault or f"its result lacks something: {type(error).__name__}: {error}"
    # A script may have more of a library under a name of its own; what was not wanted is left out.
    wanted = set(row.peers)
    lines = [report.finish(adapters.say_one_thread(line)) for line in lines if line["peer"] in wanted]
    present = {line["peer"] for line in lines}
    lines += [{"peer": peer, "reason": fault or "its script says nothing of it"}
              for peer in row.peers if peer not in present]
    # Figures of a script that failed are figures, but that it failed is said of every one of our own answers.
    if fault and own is not None:
        own = {**own, "fault": fault}
    return {**about, "seconds": time.perf_counter() - started, **({"vicinal": own} if own else {}), "peers": lines}


def run(options):
    rows = chosen(options)
    options.work = (options.work or command.SOURCE / "build/bench").resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.output and not options.output.absolute().parent.is_dir():
        raise Failure(DATA, f"{options.output}: its folder is not there")

    def say(text):
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    builds = command.Builds(options.bench)
    version = builds.version()
    environments = Environments(options.pythons, not options.no_install, say)
    told = {**report.head(options, options.size, version), "rows": []}
    for number, row in enumerate(rows, 1):
        say(f"[{number}/{len(rows)}] {row.name}: {row.about}" if options.size == "full" else
            f"[{number}/{len(rows)}] {row.name}, {options.size} size")
        told["rows"].append(run_row(row, options, builds, environments, version))
        write(options, told)
    if options.compare:
        before = report.stored(options.compare, options.machine, options.size)
        told["compared_with"] = before[0].name if before else None
        if before:
            text, told["comparison"] = report.comparison(before[1], told)
            compared = f"\nRatios then ({before[0].name}) and now, so far as both have them:\n{text}"
        else:
            compared = (f"\nThere is no stored run of the {options.size} size of machine kind {options.machine} in "
                        f"{options.compare}; to compare later ones with this one, store its result there as "
                        f"{report.result_name(told)}\n")
    write(options, told)
    try:
        judge(options, told)
    except Failure as failure:
        told["error"] = failure.about()
        failure.printed = options.json
        raise
    finally:
        if options.json:
            print(json.dumps(told, indent=2))
        else:
            print(report.table(told["rows"]) + (compared if options.compare else ""), end="", flush=True)


def write(options, told):
    """After every row, so that a run that is ended leaves what it has; the file is whole at any time."""
    if not options.output:
        return
    part = options.output.with_name(options.output.name + ".part")
    try:
        part.write_text(json.dumps(told, indent=1) + "\n")
        os.replace(part, options.output)
    except OSError as error:
        raise Failure(DATA, f"{options.output}: cannot be written: {error.strerror}") from None


def judge(options, told):
    """Raises a Failure where the run is not what it should be."""
    wrong = [row["row"] for row in told["rows"] if row.get("vicinal", {}).get("exact") is False]
    if wrong:
        raise Failure(INTERNAL, f"answers of vicinal are wrong in {', '.join(wrong)}")
    lines = [(row, line) for row in told["rows"] for line in row["peers"]]
    open_ones = [(row, line) for row, line in lines if not report.is_complete(line)]
    if len(open_ones) == len(lines) and not any("at_least" in line for _, line in lines):
        gpu = all(row["group"] == "gpu" for row in told["rows"]) and command.missing_device()
        raise Failure(DEVICE if gpu else DATA, f"no library could be compared: {open_ones[0][1]['reason']}")
    if not options.verify:
        return
    faults = [f"{row['row']}: {row['vicinal']['fault']}" for row in told["rows"] if row.get("vicinal", {}).get("fault")]
    if faults:
        raise Failure(INTERNAL, f"--verify: {faults[0]}")
    unknown = [row["row"] for row in told["rows"] if "vicinal" not in row or row["vicinal"]["exact"] is None]
    if open_ones:
        row, line = open_ones[0]
        raise Failure(INTERNAL, f"--verify: {len(open_ones)} of {len(lines)} lines have no figures, the first of "
                                f"{row['row']}, {line['peer']}: {line['reason']}")
    if unknown:
        raise Failure(INTERNAL, f"--verify: answers of vicinal were not checked in {', '.join(unknown)}")


def interrupt(*_):
    raise KeyboardInterrupt


def main(words):
    # What a row started is ended with this program.
    signal.signal(signal.SIGTERM, interrupt)
    try:
        options = parse(words)
        listing(options) if options.list else run(options)
    except Failure as caught:
        failure = caught
    except KeyboardInterrupt:
        failure = Failure(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        return 0
    else:
        return 0
    print(f"vicinal-bench: error: {failure}", file=sys.stderr)
    if "--json" in words and not failure.printed:
        print(json.dumps({"error": failure.about()}, indent=2))
    return failure.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

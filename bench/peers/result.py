"""What scripts share: the options of a result's file, the name of the processor, and how the file is written."""

import datetime
import json
import os
import pathlib


def add_options(parser):
    parser.add_argument("-o", "--output", help="what was measured, as JSON")
    parser.add_argument("--machine", default="unknown", help="what ran it, for whoever reads the result")
    parser.add_argument("--commit", default="unknown")


def processor():
    """The processor's name, as the kernel gives it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def write(arguments, measured):
    """After every line, so that a run that is ended leaves what it has. Nothing without --output."""
    if not arguments.output:
        return
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    about = {"machine": arguments.machine, "cores": os.cpu_count(), "commit": arguments.commit, "date": date}
    pathlib.Path(arguments.output).write_text(json.dumps({**about, **measured}, indent=1) + "\n")

"""Ctrl-C in Python: how long after it does the call end?

    PYTHONPATH=build/release/python python_interrupts.py --commit ID -o python-interrupts.json [--signals 20]

For each call of tests/python/test_interrupt.py, SIGINT at random times of its first second, and for each stage of lle
up to 50 ms after the stage begins. The table has the milliseconds from the signal to KeyboardInterrupt: median and
worst. Contract clause 11 allows 100 on a machine that does nothing else.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "python"))
import test_interrupt as tests


class Signal:
    """One SIGINT to the main thread, some seconds after `start`."""

    def __init__(self, after):
        self.sent = None
        self.timer = threading.Timer(after, self.send)
        self.start = self.timer.start

    def send(self):
        self.sent = time.monotonic()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def late_by(call, after):
    """Milliseconds from the signal to KeyboardInterrupt; `call` gets what starts the clock."""
    one, ended = Signal(after), False
    try:
        call(one.start)
        ended = True  # before its signal, which is not counted
        one.timer.join()
        time.sleep(1)
    except KeyboardInterrupt:
        if one.sent is None:
            raise  # it is the user's
        return None if ended else 1e3 * (time.monotonic() - one.sent)
    return None


def undisturbed(call):
    """As a call that starts the clock at once."""

    def started(start):
        start()
        call()

    return started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", type=int, default=20, help="a call or stage [20]")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    draw = random.Random(1)
    calls = {name: (undisturbed(call), 1.0) for name, call in tests.CALLS.items()}
    for name in tests.LLE_STAGES:
        calls[f"lle, stage {name}"] = (lambda start, name=name: tests.embed_until(name, start), 0.05)
    rows = []
    for name, (call, span) in calls.items():
        waits = [late_by(call, draw.uniform(0, span)) for _ in range(given.signals)]
        counted = [wait for wait in waits if wait is not None]
        rows.append(
            {
                "call": name,
                "signals": len(counted),
                "median_ms": round(statistics.median(counted), 1) if counted else None,
                "worst_ms": round(max(counted), 1) if counted else None,
            }
        )
        print(*rows[-1].values(), flush=True)
    machine = {"cores": os.cpu_count(), "system": platform.platform()}
    record = {"date": datetime.date.today().isoformat(), "commit": given.commit, "machine": machine, "rows": rows}
    pathlib.Path(given.output).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

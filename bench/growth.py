"""Writes docs/growth.md's exponents and bench/claims/growth.json from a result of `vicinal-bench growth`.

    growth.py bench/results/growth-MACHINE-DATE-COMMIT.json

Everything on the page between the lines `<!-- exponents -->` and `<!-- end -->`, and between `<!-- surprise -->` and
`<!-- end -->`, is replaced. Each sentence with a figure is written together with the claim that
tests/manners/test_claims.py checks.
"""

import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "manners"))
from test_claims import computed, read_result  # noqa: E402

PAGE = "docs/growth.md"
CLAIMS = ROOT / "bench" / "claims" / "growth.json"

RANKED = "pairs ranked"


def sweep_of(name, letter):
    return f'systems["{name}"].sweeps.{letter}'


def point_of(name, letter, at):
    return f"{sweep_of(name, letter)}.points[{at}]"


# The surprise and its counter. (text, expressions): a paragraph each.
SURPRISE = [
    ("Counting the rows within a radius does not take time in proportion to the rows. From n = {:,.0f} to {:,.0f}, "
     "with {:,.0f} queries each time, the neighbors that are counted grow as n^{:.2f}, but time only as n^{:.2f} "
     "(± {:.2f}): {:,.0f} times as many neighbors take {:.0f} times as long.",
     [f"{point_of('radius', 'n', 0)}.size", f"{point_of('radius', 'n', -1)}.size", "10000",
      f'{sweep_of("radius", "n")}.counters["neighbors counted"].exponent',
      f"{sweep_of('radius', 'n')}.time.exponent", f"{sweep_of('radius', 'n')}.time.margin",
      f'{point_of("radius", "n", -1)}.counters["neighbors counted"] / '
      f'{point_of("radius", "n", 0)}.counters["neighbors counted"]',
      f"{point_of('radius', 'n', -1)}.least_seconds / {point_of('radius', 'n', 0)}.least_seconds"]),
    ("The counter of ranked pairs explains it. If a box of the kd-tree is completely within the radius, its rows are "
     "counted without being read; a box that is completely outside is skipped. Only the rows of boxes that the surface "
     "of the sphere cuts are ranked. In three dimensions there are about n^(2/3) of these: the pairs ranked grow as "
     "n^{:.2f} (± {:.2f}). At n = {:,.0f}, {:,.0f} rows are ranked for each query, and {:,.0f} are counted.",
     [f'{sweep_of("radius", "n")}.counters["{RANKED}"].exponent',
      f'{sweep_of("radius", "n")}.counters["{RANKED}"].margin',
      f"{point_of('radius', 'n', -1)}.size",
      f'{point_of("radius", "n", -1)}.counters["{RANKED}"] / 10000',
      f'{point_of("radius", "n", -1)}.counters["neighbors counted"] / 10000']),
]


def claim(result, text, values):
    return {"page": PAGE, "text": text, "result": result, "values": values}


def escaped(text):
    return text.replace("{", "{{").replace("}", "}}")


def table_claims(result, name):
    """The head of the table, and a claim for each of its rows."""
    head = ["| system | size | other sizes | from | to | exponent of time | exponent of peak memory |",
            "| --- | --- | --- | --- | --- | --- | --- |"]
    claims = []
    for system, measured in result["systems"].items():
        for letter, sweep in measured["sweeps"].items():
            at = sweep_of(system, letter)
            values = [f"{at}.fixed", f"{at}.points[0].size", f"{at}.points[-1].size"]
            text = f"| {system} | {letter}, {escaped(sweep['meaning'])} | {{}} | {{:,.0f}} | {{:,.0f}} | "
            for kind in ("time", "memory"):
                # A table that fits in memory that is there already takes nothing that the system sees.
                if sweep[kind] is None:
                    text += "- | "
                else:
                    text += "{:.2f} ± {:.2f} | "
                    values += [f"{at}.{kind}.exponent", f"{at}.{kind}.margin"]
            claims.append(claim(name, text.strip(), values))
    return head, claims


def bend_claims(result, name):
    """Of the bends that a counter or another method explains."""
    claims = []
    for system, measured in result["systems"].items():
        for letter, sweep in measured["sweeps"].items():
            for i, bend in enumerate(sweep["bends"]):
                if bend["counter"] or "the method changes" in bend["reason"]:
                    claims.append(claim(name, f"- {system}: {{}}", [f"{sweep_of(system, letter)}.bends[{i}].reason"]))
    return claims


def filled(text, indent=""):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


def replaced(page, name, text):
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"the page has no section {name}")
    return pattern.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1])
    result = read_result(path)
    if result["quick"] or not result["commit"]:
        sys.exit(f"{path}: made with --quick or without --commit")
    results = {path.name: result}
    machine = result["machine"]
    told = claim(path.name, "{}, {:.0f} threads, {}, commit {}, a time limit of {:.0f} s for each system, "
                 "{:,.0f} checked answers, {:.0f} of them wrong",
                 ["machine.cpu", "threads", "date[:10]", "commit", "time_limit", "checked_answers", "wrong_answers"])
    if machine["cpu"] is None:
        sys.exit(f"{path}: has no processor")
    head, rows = table_claims(result, path.name)
    bends = bend_claims(result, path.name)
    surprise = [claim(path.name, text, values) for text, values in SURPRISE]
    exponents = [filled(f"Measured on: {computed(told, results)} ([JSON](../bench/results/{path.name}))."),
                 "\n".join(head + [computed(one, results) for one in rows]),
                 "Bends that a counter or another method explains:",
                 "\n".join(filled(computed(one, results), "  ") for one in bends)]
    page = (ROOT / PAGE).read_text()
    page = replaced(page, "exponents", "\n\n".join(exponents))
    page = replaced(page, "surprise", "\n\n".join(filled(computed(one, results)) for one in surprise))
    (ROOT / PAGE).write_text(page)
    CLAIMS.write_text(json.dumps([told, *rows, *bends, *surprise], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes docs/growth.md's exponents and bench/claims/growth.json from a result of `vicinal-bench growth`.

    growth.py bench/results/growth-MACHINE-DATE-COMMIT.json

Everything on the page between one of the lines `<!-- surprise -->`, `<!-- exponents -->` and `<!-- reasons -->` and the
next line `<!-- end -->` is replaced. Each sentence with a figure is written together with the claim that
tests/manners/test_claims.py checks.
"""

import json
import pathlib
import sys

from page import CLAIMS, ROOT, computed, filled, read_result, replaced

PAGE = "docs/growth.md"

RANKED = "pairs ranked"
BY_QUERIES = ("knn-fused", "knn-kdtree", "radius")


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


def exponent_of(name, letter, counter=None):
    return f"{sweep_of(name, letter)}." + (f'counters["{counter}"]' if counter else "time") + ".exponent"


def size_of(name, letter, at):
    return f"{point_of(name, letter, at)}.size"


def last_step_of(name, letter):
    return f"{sweep_of(name, letter)}.step_exponents[-1]"


def counted(name, letter, at, counter):
    return f'{point_of(name, letter, at)}.counters["{counter}"]'


# Why exponents that may surprise are right. With a new result, read again what these sentences say beside figures.
REASONS = [
    ("- knn-fused, knn-kdtree and radius, queries (m^{:.2f}, m^{:.2f}, m^{:.2f}): the pairs ranked grow as m^{:.2f}, "
     "m^{:.2f} and m^{:.2f}. But each call also prepares the table, which takes the same time for any number of "
     "queries. Between the last two sizes the exponents are {:.2f}, {:.2f} and {:.2f}.",
     [exponent_of(name, "m", counter) for counter in (None, RANKED) for name in BY_QUERIES] +
     [last_step_of(name, "m") for name in BY_QUERIES]),
    ("- knn-fused, rows (n^{:.2f}): the screen drops nearly all additional rows, so the pairs ranked grow as n^{:.2f} "
     "only. The preparation of the table and the products of the screen do grow with n.",
     [exponent_of("knn-fused", "n"), exponent_of("knn-fused", "n", RANKED)]),
    ("- knn-kdtree, rows (n^{:.2f}): for each query {:.0f} rows are ranked at n = {:,.0f}, and {:.0f} at n = {:,.0f}. "
     "The construction of the tree does grow with n; between the last two sizes the exponent is {:.2f}.",
     [exponent_of("knn-kdtree", "n"), counted("knn-kdtree", "n", 0, RANKED) + " / 10000",
      size_of("knn-kdtree", "n", 0), counted("knn-kdtree", "n", -1, RANKED) + " / 10000",
      size_of("knn-kdtree", "n", -1), last_step_of("knn-kdtree", "n")]),
    ("- lle, columns (d^{:.2f}): only preparation, search and weights read the columns. The entries of the factor grow "
     "as d^{:.2f}, its operations as d^{:.2f}.",
     [exponent_of("lle", "d"), exponent_of("lle", "d", "factor entries"),
      exponent_of("lle", "d", "factor operations")]),
    ("- cocluster, edges of a member (k^{:.2f}): {:,.0f} members of one edge are {:,.0f} groups, those of {:.0f} edges "
     "{:.0f}. So nearly all further edges join nothing: they are only looked up, and take no memory.",
     [exponent_of("cocluster", "k"), counted("cocluster", "k", 0, "edges"), counted("cocluster", "k", 0, "groups"),
      size_of("cocluster", "k", 2), counted("cocluster", "k", 2, "groups")]),
    ("- dbscan, `min_samples` (k^{:.2f}): `eps` is the same for all k. From k = {:.0f} on there are {:.0f} core rows, "
     "so each search counts the same rows.",
     [exponent_of("dbscan", "k"), size_of("dbscan", "k", 2), counted("dbscan", "k", 2, "core rows")]),
    ("- spanning-tree, hdbscan and optics, small `min_samples`: neighbor lists have at least 10 rows, so the work is "
     "the same. For example, hdbscan ranks {:,.0f} pairs for k = {:.0f} and {:,.0f} for k = {:.0f}.",
     [counted("hdbscan", "k", 0, RANKED), size_of("hdbscan", "k", 0), counted("hdbscan", "k", 1, RANKED),
      size_of("hdbscan", "k", 1)]),
    ("- optics, from d = {:.0f} to {:.0f} (d^{:.2f}): with the kd-tree {:,.0f} pairs are ranked; without it the keys "
     "of all pairs of the 5,000 rows are computed. Time grows by a factor of {:.1f} for twice the columns.",
     [size_of("optics", "d", -2), size_of("optics", "d", -1), last_step_of("optics", "d"),
      counted("optics", "d", -2, RANKED),
      f"{point_of('optics', 'd', -1)}.least_seconds / {point_of('optics', 'd', -2)}.least_seconds"]),
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
    reasons = [claim(path.name, text, values) for text, values in REASONS]
    exponents = [filled(f"Measured on: {computed(told, results)} ([JSON](../bench/results/{path.name}))."),
                 "\n".join(head + [computed(one, results) for one in rows]),
                 "Bends that a counter or another method explains:",
                 "\n".join(filled(computed(one, results), "  ") for one in bends)]
    page = (ROOT / PAGE).read_text()
    page = replaced(page, "exponents", "\n\n".join(exponents))
    page = replaced(page, "surprise", "\n\n".join(filled(computed(one, results)) for one in surprise))
    page = replaced(page, "reasons", "\n".join(filled(computed(one, results), "  ") for one in reasons))
    (ROOT / PAGE).write_text(page)
    (CLAIMS / "growth.json").write_text(json.dumps([told, *rows, *bends, *surprise, *reasons], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the tables of docs/peers.md, and their claims, from a full result of `vicinal-bench peers`.

    peers_page.py bench/results/peers-MACHINE-DATE-COMMIT.json
    peers_page.py --join PART... OUTPUT

Everything on the page between the lines `<!-- tables -->` and `<!-- end -->` is replaced. Each line of a table is
written together with the claim that tests/manners/test_claims.py checks.

--join makes one result of several, in which rows were measured one by one. A row that several of them have is that of
the last one. A row of another machine than the first result's keeps its machine, which the page names; a ratio is always
that of two times of one run.
"""

import json
import pathlib
import sys

from page import ROOT, Writer, filled

sys.path.insert(0, str(ROOT / "bench" / "peers" / "suite"))
import catalog  # noqa: E402

PAGE = "docs/peers.md"
GROUPS = {"knn": "Searches", "kmeans": "k-means", "lof": "Outlier scores", "lle": "Locally linear embedding",
          "density": "Density clustering", "match": "Maps", "ready": "Few queries of a ready index", "read": "Files",
          "missing": "Missing values", "gpu": "On a GPU"}
HEAD = "| job | library | theirs, ms | ours, ms | ratio | its answers |\n| --- | --- | --- | --- | --- | --- |"


def milliseconds(seconds):
    """A format for so many seconds: three digits, or all whole milliseconds."""
    value = 1e3 * seconds
    return "{:,.0f}" if value >= 100 else "{:.1f}" if value >= 10 else "{:.2f}" if value >= 1 else "{:.3f}"


def introduction(writer):
    result = writer.result
    text = writer.text("Measured on: {}, {:.0f} threads, {}, commit {}",
                       ["machine", "threads", "date[:10]", "commit"])
    measured = {row.row for row in result.rows}
    left = [row.name for row in catalog.ROWS if row.name not in measured and row.group != "gpu"]
    texts = [f"{text} ([JSON](../bench/results/{writer.name}))."]
    here = "On this machine, too"
    elsewhere = {here: {}}
    for row in result.rows:
        if "machine" in row:
            elsewhere.setdefault(f"On another machine ({row.machine}, {row.threads:.0f} threads, {row.date[:10]})",
                                 {}).setdefault(row.commit, []).append(row.row)
        elif row.commit != result.commit:
            elsewhere[here].setdefault(row.commit, []).append(row.row)
    for where, commits in elsewhere.items():
        if not commits:
            continue
        parts = [f"{', '.join(f'`{name}`' for name in names)} (commit {commit})" for commit, names in commits.items()]
        texts.append(f"{where}: {', '.join(parts)}.")
    if left:
        texts.append("Not measured in full size: " + ", ".join(f"`{name}`" for name in left) + ".")
    return filled(" ".join(texts))


def tables(writer, group):
    """Lines of all rows of a group, and why libraries were not compared."""
    lines, reasons = [HEAD], []
    for r, row in enumerate(writer.result.rows):
        if row.group != group:
            continue
        for p, line in enumerate(row.peers):
            at = f"rows[{r}].peers[{p}]"
            if "ratio" not in line:
                case = f" ({line.case})" if line.get("case") else ""
                reasons.append(f"`{row.row}`{case}, {line.peer}: {line.reason.rstrip('.')}.")
                continue
            case = [f"{at}.case"] if line.get("case") else []
            version = [f"{at}.version"] if line.get("version") else []
            text = ("| {}" + ", {}" * len(case) + " | {}" + " {}" * len(version) + f" | {milliseconds(line.seconds)} | "
                    f"{milliseconds(line.our_seconds)} | {{:.2f}} | {{}} |")
            lines.append(writer.text(text, [f"rows[{r}].about", *case, f"{at}.peer", *version, f"1e3 * {at}.seconds",
                                            f"1e3 * {at}.our_seconds", f"{at}.ratio", f"{at}.exactness"]))
        asked = {line.peer for line in row.peers}
        known = next(one.peers for one in catalog.ROWS if one.name == row.row)
        reasons += [f"`{row.row}`, {peer}: left out (`--libraries`)." for peer in known if peer not in asked]
    texts = ["\n".join(lines)] if len(lines) > 1 else []
    if reasons:
        texts.append(filled("Not compared: " + " ".join(reasons)))
    return texts


def join(parts, output):
    results = [json.loads(pathlib.Path(part).read_text()) for part in parts]
    for part, result in zip(parts, results):
        for key in ("command", "size"):
            if result[key] != results[0][key]:
                sys.exit(f"{part}: another {key} than {parts[0]}")
    rows = {}
    for result in results:
        machine = {key: result[key] for key in ("machine", "cores", "threads")}
        own = {"commit": result["commit"], "date": result["date"]}
        if any(machine[key] != results[0][key] for key in machine):
            own |= machine
        rows |= {row["row"]: {**own, **row} for row in result["rows"]}
    joined = {**results[0], "rows": [rows[row.name] for row in catalog.ROWS if row.name in rows]}
    pathlib.Path(output).write_text(json.dumps(joined, indent=1) + "\n")
    return 0


def main():
    if sys.argv[1:2] == ["--join"] and len(sys.argv) >= 4:
        return join(sys.argv[2:-1], sys.argv[-1])
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1])
    writer = Writer(PAGE, path)
    if writer.result.size != "full":
        sys.exit(f"{path}: not in full size")
    texts = [introduction(writer)]
    for group, title in GROUPS.items():
        found = tables(writer, group)
        texts += [f"## {title}", *found] if found else []
    writer.save("tables", texts, "peers.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())

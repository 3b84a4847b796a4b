"""Writes a section of docs/papers.md, and its claims, from a result of `vicinal-bench papers`: "One H200" from one that
was measured with `--device cuda`, and "Two cores" from one of the CPU alone.

    papers.py bench/results/papers-MACHINE-DATE-COMMIT.json
    papers.py --join RESULT PART... OUTPUT

Everything on the page between the lines `<!-- two cores -->` (or `<!-- one h200 -->`) and `<!-- end -->` is replaced.
Titles, sentences and figures are those of the result, which `vicinal-bench papers --from` writes again after its
sentences have changed. Each text is written together with the claim that tests/manners/test_claims.py checks. Of a
table with more than eight lines, the page has the first and the last line of each group: lines that differ only in the
last of the columns before the times. Of a table with one group it has the first, the middle and the last line.

--join adds parts that were measured alone (`vicinal-bench papers lle -o PART`) to a result, in place of its own; then
`vicinal-bench papers --from OUTPUT -o OUTPUT` writes the tables of all parts.
"""

import itertools
import json
import pathlib
import sys

from page import Writer, filled

PAGE = "docs/papers.md"
PARTS = ["gs", "gs-attacks", "lof", "lle-search", "lle", "km", "cc"]
TWO_CORES, ONE_H200 = "two cores", "one h200"
MOST_LINES = 8
# Shown instead of all lines where a table has only one group.
SHOWN_OF_ONE_GROUP = 3


def row_of(writer, cells):
    """A row of a table, of texts in which thousands are apart."""
    return writer.text("| " + " | ".join("{}" for _ in cells) + " |", [f"commas({cell})" for cell in cells])


def section_of(result):
    return ONE_H200 if any(part["device"] != "cpu" for part in result["parts"]) else TWO_CORES


def introduction(writer, result):
    """Where and when, and the parts that --join took from other commits."""
    device, named = ("", []) if section_of(result) == TWO_CORES else (" and {}", ["machine.cuda.devices[0].model"])
    text = writer.text(
        "Measured on: {}, {:.0f} threads" + device + ", {}, commit {}, medians of up to {:.0f} runs. "
        "Of {:,.0f} answers that were compared with the reference, {:,.0f} were wrong; "
        "in {} did two methods give different answers",
        ["machine.cpu", "parts[0].threads", *named, "date[:10]", "commit",
         "len(parts[0].tables[0].lines[0].seconds.runs)", "checked_answers", "wrong_answers",
         "f'{different_answers:,} lines' if different_answers else 'no line'"])
    texts = [f"{text} ([JSON](../bench/results/{writer.name}))."]
    joined = {}
    for i, part in enumerate(result["parts"]):
        if part.get("joined") or part["commit"] != result["commit"]:
            joined.setdefault(part["commit"], []).append(i)
    for numbers in joined.values():
        names = ["`{}`"] * len(numbers)
        parts = " and ".join([", ".join(names[:-1])] * (len(names) > 1) + names[-1:])
        word = "part {} was" if len(names) == 1 else "parts {} were"
        texts.append(writer.text(
            f"The {word.format(parts)} measured alone, at commit {{}}, and joined (`bench/papers.py --join`).",
            [*(f"parts[{i}].part" for i in numbers), f"parts[{numbers[0]}].commit"]))
    return filled(" ".join(texts))


def rule(columns):
    return "| " + " | ".join("---" for _ in range(columns)) + " |"


def shown_rows(table):
    """Numbers of the lines that the page has."""
    rows = table["rows"]
    names = next((i for i, column in enumerate(table["columns"]) if ", " in column), None)
    if len(rows) <= MOST_LINES or names is None:  # without a unit all columns are names
        return list(range(len(rows)))
    groups = [[i for i, _ in group]
              for _, group in itertools.groupby(enumerate(rows), key=lambda row: row[1][:max(names - 1, 0)])]
    if len(groups) == 1:
        last = len(rows) - 1
        return sorted({last * i // (SHOWN_OF_ONE_GROUP - 1) for i in range(SHOWN_OF_ONE_GROUP)})
    return [i for group in groups for i in dict.fromkeys((group[0], group[-1]))]


def overview(writer, tables):
    lines = ["| paper | what | in the paper | here |", rule(4)]
    for t, table in tables.items():
        for f in range(len(table["figures"])):
            figure = f"tables[{t}].figures[{f}]"
            lines.append(row_of(writer, [f"tables[{t}].paper", f"{figure}.what", f"{figure}.paper", f"{figure}.here"]))
    return "\n".join(lines)


def section(writer, t, table):
    at = f"tables[{t}]"
    columns = len(table["columns"])
    shown = shown_rows(table)
    lines = [row_of(writer, [f"{at}.columns[{c}]" for c in range(columns)]), rule(columns)]
    lines += [row_of(writer, [f"{at}.rows[{r}][{c}]" for c in range(columns)]) for r in shown]
    rows = "synthetic rows" if table["synthetic"] else "real rows"
    kind = rows if len(shown) == len(table["rows"]) else f"{rows}, {len(shown)} of {len(table['rows'])} lines shown"
    return [writer.text("#### {}: {}", [f"{at}.paper", f"{at}.title"]),
            "\n".join([filled(writer.text("- **The paper.** {}", [f"{at}.paper_says"]), "  "),
                       filled(writer.text("- **What differs.** {}", [f"{at}.differs"]), "  "),
                       filled(writer.text("- **Checked.** {:,.0f} answers, {:,.0f} of them wrong (" + kind + ").",
                                          [f"{at}.checked", f"{at}.wrong"]), "  ")]),
            "\n".join(lines)]


def join(result, parts, output):
    joined = json.loads(pathlib.Path(result).read_text())
    named = {(part["part"], part["device"]): part for part in joined["parts"]}
    for path in parts:
        part = json.loads(pathlib.Path(path).read_text())
        name = part["command"].split()[-1]
        if name not in PARTS:
            sys.exit(f"{path}: not a part of vicinal-bench papers")
        if part["machine"]["cpu"] != joined["machine"]["cpu"]:
            sys.exit(f"{path}: measured on another machine")
        named[name, part["device"]] = {**part, "part": name, "joined": True}
    joined["parts"] = sorted(named.values(), key=lambda part: PARTS.index(part["part"]))
    pathlib.Path(output).write_text(json.dumps(joined, indent=2) + "\n")
    return 0


def main():
    if sys.argv[1:2] == ["--join"] and len(sys.argv) >= 5:
        return join(sys.argv[2], sys.argv[3:-1], sys.argv[-1])
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = pathlib.Path(sys.argv[1])
    writer = Writer(PAGE, path)
    result = writer.result
    if result["quick"] or not result["commit"] or not result["verify"]:
        sys.exit(f"{path}: made with --quick, without --commit or with --no-verify")
    section_name = section_of(result)
    on_gpu = section_name == ONE_H200
    if [part["part"] for part in result["parts"] if not on_gpu or part["device"] != "cpu"] != PARTS:
        sys.exit(f"{path}: not all parts, or more than one device of a kind")
    # Beside a GPU, the tables of its host's cores are in the result alone.
    tables = {t: table for t, table in enumerate(result["tables"]) if not on_gpu or table["device"] != "cpu"}
    texts = [introduction(writer, result), overview(writer, tables)]
    for t, table in tables.items():
        texts += section(writer, t, table)
    writer.save(section_name, texts, f"papers-{section_name.replace(' ', '-')}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())

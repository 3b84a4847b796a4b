"""The figures of README.md and docs are those of bench/results, and every result says where it comes from.

Usage: test_claims.py SOURCE_TREE.

A result is one JSON object with "machine", "date" and "commit", and a file name with the date. bench/claims/*.json are
lists of claims, one file for each page. A claim has "page"; "text", a format of Python; "values", the expressions that
fill it; and "result", the name of a file of bench/results, or "results", several with a name for each. An expression
reads the keys of the result as names, and keys of objects as attributes: jobs[0].seconds.median; `result` is the whole
file. With several results, their names come first: a.seconds. Faults are:

- a result without machine, date or commit, or whose commit, or that of a part, is not in the history (skipped, and said
  so, where there is no complete history, as in a tarball)
- a claim whose text is not in its page (white space counts as one space), or that cannot be computed
- a page, script or claim that names a result that is not there
- a result that no page, script, test or claim names
- a result that README.md or a page of docs names, and that has no claim
"""

import bisect
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

FIELDS = ("machine", "date", "commit")
NAME = re.compile(r"(?<![\w*-])[a-z][\w.-]*-\d{4}-\d\d-\d\d[\w.-]*?\.jsonl?\b")
SOURCES = {".md", ".py", ".sh", ".cpp", ".cu", ".hpp", ".json", ".txt", ".cmake"}


class Record(dict):
    """An object of JSON, whose keys are attributes."""

    def __getattribute__(self, name):
        return self[name] if dict.__contains__(self, name) else super().__getattribute__(name)


def short(value, digits):
    """6.4e9 and 3e-7, with `digits` after the point."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def commas(text):
    """12,345 for 12 345."""
    return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", ",", text)


CALLS = {"short": short, "commas": commas, "ceil": math.ceil, "median": statistics.median, "mean": statistics.mean,
         "min": min, "max": max, "sum": sum, "len": len, "round": round, "abs": abs, "any": any, "float": float,
         "__builtins__": {}}


def read_result(path):
    return json.loads(path.read_text(), object_hook=Record)


def one_space(text):
    return " ".join(text.split())


def computed(claim, results):
    """The text of a claim with its figures."""
    if "result" in claim:
        result = results[claim["result"]]
        names = {**result, "result": result}
    else:
        names = {name: results[file] for name, file in claim["results"].items()}
    # One dictionary: a comprehension sees only globals.
    scope = {**names, **CALLS}
    return claim["text"].format(*[eval(value, dict(scope)) for value in claim["values"]])  # the tree's own expressions


def names_of(claim):
    return [claim["result"]] if "result" in claim else list(claim["results"].values())


def history(root):
    """Sorted hashes of all commits; None if the tree has no complete history."""
    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], text=True, capture_output=True)
    if shutil.which("git") is None or git("rev-parse", "--show-cdup").stdout.strip():
        return None
    if git("rev-parse", "--is-shallow-repository").stdout != "false\n":
        return None
    log = git("rev-list", "HEAD")
    return sorted(log.stdout.split()) if log.returncode == 0 else None


def is_commit(name, commits):
    at = bisect.bisect_left(commits, name)
    return bool(re.fullmatch("[0-9a-f]{7,40}", name)) and at < len(commits) and commits[at].startswith(name)


def pages_of(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def pages_with_figures(root):
    return [path for path in [*pages_of(root), root / "bench" / "README.md"] if path.is_file()]


def texts_of(root):
    """What may name a result: (path, text)."""
    files = [root / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/results/README.md")]
    for folder in ("docs", "bench", "tests"):
        files += (root / folder).rglob("*")
    for path in files:
        inside = path.relative_to(root)
        hidden = any(part.startswith((".", "__")) for part in inside.parts)
        raw = inside.parts[:2] == ("bench", "results") and path.name != "README.md"
        if path.suffix in SOURCES and path.is_file() and not (hidden or raw) and path.name != "test_claims.py":
            yield inside.as_posix(), path.read_text(errors="replace")


def claims_of(root):
    """(file, claim)."""
    return [(path.name, claim) for path in sorted((root / "bench" / "claims").glob("*.json"))
            for claim in json.loads(path.read_text())]


def commits_of(result):
    """That of a result, and those of parts that were measured at others."""
    parts = [part for value in result.values() if isinstance(value, list) for part in value if isinstance(part, dict)]
    return sorted({str(part["commit"]) for part in [result, *parts] if part.get("commit")})


def faults_of(root, commits):
    results = {}
    for path in sorted((root / "bench" / "results").iterdir()):
        if path.name == "README.md":
            continue
        try:
            results[path.name] = result = read_result(path)
            lacks = [field for field in FIELDS if not result.get(field)]
        except (ValueError, AttributeError):
            yield f"{path.name}: not one JSON object"
            continue
        if lacks:
            yield f"{path.name}: no {', '.join(lacks)}"
        elif commits is not None:
            for commit in commits_of(result):
                if not is_commit(commit, commits):
                    yield f"{path.name}: its commit {commit} is not in the history"

    claims = claims_of(root)
    pages = {path.relative_to(root).as_posix(): path.read_text() for path in pages_with_figures(root)}
    plain = {name: one_space(text) for name, text in pages.items()}
    claimed = set()
    for file, claim in claims:
        page = claim.get("page")
        if page not in pages:
            yield f"bench/claims/{file}: {page} is not a page"
            continue
        claimed.update(names_of(claim))
        try:
            text = one_space(computed(claim, results))
        except Exception as error:  # whatever an expression or a format raises
            yield f"bench/claims/{file}: {claim['text'][:60]!r} cannot be computed: {type(error).__name__}: {error}"
            continue
        if not text or text not in plain[page]:
            yield f"{page} does not say what {', '.join(names_of(claim))} holds: {text}"

    texts = dict(texts_of(root))
    named = set()
    for name, text in texts.items():
        found = set(NAME.findall(text))
        named |= found
        yield from (f"{name}: there is no result {result}" for result in sorted(found - results.keys()))
    yield from (f"{result}: no page, script, test or claim names it" for result in sorted(results.keys() - named))

    shown = {result for path in pages_of(root) for result in NAME.findall(path.read_text())}
    yield from (f"{result}: a page names it, and it has no claim" for result in sorted(shown - claimed))


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def check_faults(folder):
    """A small tree has no fault, and one after each change."""
    name = "speed-xeon2-2026-11-28-0123456.json"
    result = {"machine": "m", "date": "d", "commit": "0123456", "runs": [{"seconds": 1.234}, {"seconds": 3.0}]}
    claim = {"page": "docs/a.md", "text": "{:.1f} to {:.1f} s", "result": name,
             "values": ["min(run.seconds for run in runs)", "runs[1].seconds"]}
    link = f"It takes 1.2\nto 3.0 s ([JSON](../bench/results/{name}))."
    tree = {"README.md": "", "docs/a.md": link, f"bench/results/{name}": result, "bench/claims/a.json": [claim]}
    cases = [
        ({}, None),
        ({"docs/a.md": link.replace("3.0", "3.1")}, "does not say"),
        ({f"bench/results/{name}": {**result, "runs": [{"seconds": 1.26}, {"seconds": 3.0}]}}, "does not say"),
        ({f"bench/results/{name}": {**result, "machine": ""}}, "no machine"),
        ({f"bench/results/{name}": {**result, "commit": "0123457"}}, "not in the history"),
        ({f"bench/results/{name}": {**result, "runs": [{**run, "commit": "0123458"} for run in result["runs"]]}},
         "not in the history"),
        ({f"bench/results/{name}": {**result, "runs": []}}, "cannot be computed"),
        ({"bench/results/b-2026-11-28.jsonl": "{}\n{}\n"}, "not one JSON object"),
        ({"bench/results/more-" + name: result}, "no page, script, test or claim names it"),
        ({"bench/results/" + name.removeprefix("speed-"): result}, "no page, script, test or claim names it"),
        ({"docs/b.md": "b-2026-11-28.json"}, "there is no result"),
        ({"bench/claims/a.json": []}, "it has no claim"),
    ]
    for number, (change, fault) in enumerate(cases):
        root = folder / str(number)
        write(root, {**tree, **change})
        faults = list(faults_of(root, sorted(["0123456" + 33 * "f", "abcdef0" + 33 * "0"])))
        assert any(fault in one for one in faults) if fault else not faults, (change, faults)


def check_digits(root, folder):
    """With one other digit in README, in a page of docs or in a result, this tree has one fault more."""
    for path in [*pages_with_figures(root), *(root / "bench").glob("results/*"), *(root / "bench").glob("claims/*")]:
        copy = folder / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    results = {path.name: read_result(path) for path in (root / "bench" / "results").glob("*.json")}
    before = {fault for fault in faults_of(folder, None) if "does not say" in fault}

    def is_seen(path, change):
        text = path.read_text()
        path.write_text(change(text))
        after = {fault for fault in faults_of(folder, None) if "does not say" in fault}
        path.write_text(text)
        return after > before

    def other_digit(match):
        return match.group()[:-1] + str((int(match.group()[-1]) + 1) % 10)

    for page in ("README.md", "docs/performance.md"):
        claim = next(claim for _, claim in claims_of(root) if claim["page"] == page)
        words = r"\s+".join(map(re.escape, computed(claim, results).split()))
        assert is_seen(folder / page, lambda text: re.sub(
            words, lambda found: re.sub(r"\d(?=\D*$)", other_digit, found.group(), count=1), text)), claim
    seconds = "read-csv-epyc2-2026-11-22-f2aa506.json"
    assert is_seen(folder / "bench" / "results" / seconds,
                   lambda text: re.sub(r'("seconds": *)(\d)', lambda m: m[1] + str((int(m[2]) + 1) % 10), text))


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        check_faults(pathlib.Path(folder))
    commits = history(root)
    faults = list(faults_of(root, commits))
    if not faults:
        with tempfile.TemporaryDirectory() as folder:
            check_digits(root, pathlib.Path(folder))
    claims = claims_of(root)
    if commits is None:
        print("no complete history of git here: the commits of results are not looked up")
    print("\n".join(faults) or f"{len(claims)} claims, {sum(len(claim['values']) for _, claim in claims)} figures")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

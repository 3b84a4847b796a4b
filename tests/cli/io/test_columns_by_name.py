"""Models of every command find the columns of a file by their names, whatever their order, and know the columns of
labels and ids of the file that they were made from: they answer for that file as it is."""

import csv

import numpy as np
import pytest

DATA = 3
USAGE = 2
MAKE = {
    "classify": ("train.csv", "--label", "kind", "--drop", "when", "-k", 3),
    "regress": ("train.csv", "--target", "c", "--drop", "kind", "--drop", "when", "-k", 3),
    "lof": ("train.csv", "--label", "kind", "--drop", "when", "-k", 8, "--top", 0),
    "kmeans": ("train.csv", "--label", "kind", "--drop", "when", "-c", 4),
    "lle": ("train.csv", "--label", "kind", "--drop", "when", "-k", 8),
}
COLUMNS = ["name", "a", "b", "c", "kind", "when"]


@pytest.fixture
def put(tmp_path):
    """Writes the same 60 rows (or those given) with the columns named, in that order."""
    generator = np.random.default_rng(3)
    numbers = generator.normal(size=(60, 3)) * [1, 10, 100]
    columns = {
        "name": [f"r{i}" for i in range(60)],
        "kind": ["k1" if row[0] > 0 else "k2" for row in numbers],
        "when": [str(1000 + i % 7) for i in range(60)],
        "extra": ["x"] * 60,
    }
    columns |= {name: [repr(float(v)) for v in numbers[:, j]] for j, name in enumerate("abc")}

    def write(file, names, header=True):
        lines = [",".join(names)] if header else []
        lines += [",".join(columns[name][i] for name in names) for i in range(60)]
        (tmp_path / file).write_text("\n".join(lines) + "\n")

    write("train.csv", COLUMNS)
    return write


def answered(tmp_path, file):
    return list(csv.reader((tmp_path / file).read_text().splitlines()))


@pytest.mark.parametrize("kind", MAKE)
def test_a_model_answers_for_the_file_that_it_was_made_from_and_for_others(ok, vicinal, tmp_path, put, kind):
    ok(kind, *MAKE[kind], "--id", "name", "--save-model", "m")
    compared = [name for name in "abc" if not (kind == "regress" and name == "c")]

    def asked(file, *options, code=0):
        done = vicinal(kind, file, "--model", "m", "-o", "out.csv", *options)
        assert done.returncode == code, done.stderr
        return (answered(tmp_path, "out.csv"), done.stderr) if code == 0 else done.stderr

    whole, told = asked("train.csv")
    assert len(whole) == 61 and whole[0][0] == "row" and "note" not in told
    # Other columns are of another order, not there, or more than the model knows.
    put("other.csv", ["extra", *reversed(compared)])
    other, told = asked("other.csv")
    assert other == whole and "note: 'other.csv': column 'extra' is left out" in told
    # Columns of the model that are not there are named.
    put("less.csv", ["name", compared[-1], "kind"])
    told = asked("less.csv", code=DATA)
    assert f"less.csv has no column{'s' if len(compared) > 2 else ''} {', '.join(repr(c) for c in compared[:-1])} as" in told
    # Without names it is by position, and their number must be the same.
    put("bare.csv", compared, header=False)
    assert asked("bare.csv")[0] == whole
    np.save(tmp_path / "bare.npy", np.loadtxt(tmp_path / "bare.csv", delimiter=","))
    assert asked("bare.npy")[0] == whole
    put("wide.csv", [*compared, "when"], header=False)
    assert f"{len(compared) + 1} columns" in asked("wide.csv", code=USAGE)
    # JSON lines have names, too.
    ok("convert", "other.csv", "other.jsonl", "--drop", "extra")
    assert asked("other.jsonl")[0] == whole
    # Ids of the rows that are asked about.
    named, _ = asked("train.csv", "--id", "name")
    assert named[0][0] == "name" and [row[0] for row in named[1:]] == [f"r{i}" for i in range(60)]
    assert [row[1:] for row in named] == [row[1:] for row in whole]
    assert "other.csv' has no column 'name' for id" in asked("other.csv", "--id", "name", code=USAGE)


def test_columns_given_by_their_position_are_known_by_their_names(ok, tmp_path, put):
    ok("classify", "train.csv", "--label", 4, "--drop", 5, "--drop", 0, "-k", 3, "--save-model", "m")
    ok("classify", "--model", "m", "train.csv", "-o", "direct.csv")
    put("other.csv", ["when", "c", "kind", "b", "name", "a"])
    told = ok("classify", "--model", "m", "other.csv", "-o", "other.csv.out.csv")
    assert "accuracy" in told and answered(tmp_path, "other.csv.out.csv") == answered(tmp_path, "direct.csv")


def test_tables_of_one_command_are_matched_by_name(ok, tmp_path, put):
    put("other.csv", ["c", "kind", "a", "b"])
    within = ("train.csv", "--drop", "kind", "--drop", "when")
    made = {kind: MAKE[kind] for kind in ("classify", "regress", "lof", "lle")}
    made |= {"knn": (*within, "-k", 2), "radius": (*within, "-r", 5)}
    found = {}
    for file in ("train.csv", "other.csv"):
        for kind, words in made.items():
            ok(kind, words[0], file, *words[1:], "--drop", "name", "-o", f"{kind}.csv")
            found.setdefault(kind, []).append(answered(tmp_path, f"{kind}.csv"))
    for kind, (same, other) in found.items():
        assert same == other, kind


def test_rows_from_standard_input_are_matched_by_name(ok, vicinal, tmp_path, put):
    ok("lof", *MAKE["lof"], "--id", "name", "--save-model", "m")
    ok("lof", "train.csv", "--model", "m", "-o", "all.csv", "--top", 0)
    expected = [[row[0], row[1], row[3]] for row in answered(tmp_path, "all.csv")]
    for names in (COLUMNS, ["kind", "c", "extra", "b", "a"]):
        put("rows.csv", names)
        done = vicinal("lof", "-", "--model", "m", input=(tmp_path / "rows.csv").read_text())
        assert done.returncode == 0 and list(csv.reader(done.stdout.splitlines())) == expected
        assert ("note: standard input" in done.stderr.replace("'", "")) == ("extra" in names), done.stderr
    text = (tmp_path / "train.csv").read_text()
    done = vicinal("lof", "-", "--model", "m", "--id", "name", input=text)
    assert done.stdout.splitlines()[:1] == ["name,lof,outlier"] and done.stdout.splitlines()[60].startswith("r59,")
    done = vicinal("lof", "-", "--model", "m", "--id", "name", "--json", input=text)
    assert done.stdout.splitlines()[0].startswith('{"row":"r0","line":2,"lof":')
    done = vicinal("lof", "-", "--model", "m", "--id", "nobody", input=text)
    assert done.returncode == USAGE and "no column 'nobody'" in done.stderr

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


@pytest.fixture
def write(tmp_path):
    """Writes 12 rows of the columns named: name, a, b, c and class, whose values are the same in every file."""
    generator = np.random.default_rng(8)
    columns = {name: [repr(float(v)) for v in generator.normal(size=12)] for name in "abc"}
    columns |= {"name": [f"r{i}" for i in range(12)], "class": ["u", "v"] * 6}

    def to(file, *names, header=None, comment=""):
        lines = [comment] if comment else []
        lines += [",".join(header or names)] if header != [] else []
        (tmp_path / file).write_text("\n".join(lines + [",".join(columns[n][i] for n in names) for i in range(12)]) + "\n")

    return to


def scores(told):
    return [line.split(",")[1:2] + line.split(",")[-1:] for line in told.splitlines()[1:]]


def test_how_a_file_is_read_holds_for_the_names_of_its_columns(ok, vicinal, tmp_path, write):
    write("a.csv", "a", "b", comment="%% hello, you, there")
    done = ok("knn", "a.csv", "a.csv", "-k", 1, "--comment", "%", "-o", "-")
    assert [line.split(",")[0] == line.split(",")[2] for line in done.splitlines()[1:]] == [True] * 12
    # Names that are numbers, in another order.
    write("one.csv", "a", "b", header=["1", "2"])
    write("two.csv", "b", "a", header=["2", "1"])
    done = ok("knn", "one.csv", "two.csv", "-k", 1, "--header", "-o", "-")
    assert [line.split(",")[3] for line in done.splitlines()[1:]] == ["0"] * 12
    (tmp_path / "points.csv").write_text("sep=;\na;b\n1,5;2\n3,5;4\n")
    done = ok("knn", "points.csv", "points.csv", "-k", 1, "--delimiter", ";", "--decimal", ",", "-o", "-")
    assert [line.split(",")[3] for line in done.splitlines()[1:]] == ["0"] * 2


def test_a_position_of_ids_is_that_of_the_rows_that_are_asked_about(ok, vicinal, write):
    write("full.csv", "name", "a", "b", "c", "class")
    write("train.csv", "a", "b", "c", "class")
    write("last.csv", "name", "a", "b", "c", "class")
    common = ("--drop", "class", "-k", 3, "-o", "-", "--top", 0)
    expected = scores(ok("lof", "train.csv", "last.csv", *common, "--id", "name"))
    for train in ("train.csv", "full.csv"):
        told = ok("lof", train, "last.csv", *common, "--id", 0)
        assert scores(told) == expected and told.splitlines()[1].startswith("r0,"), train
    labels = ("train.csv", "last.csv", "--label", "class", "-k", 3, "-o", "-", "--id")
    assert ok("classify", *labels, 0) == ok("classify", *labels, "name")
    # Standard input says what its columns are when TRAIN has been read.
    write("rows.csv", "name", "a", "b", "c")
    rows = ("lof", "train.csv", "-", "--drop", "class", "-k", 3, "--id")
    text = ok("convert", "rows.csv", "-", "--id", "name")
    done = vicinal(*rows, 0, input=text)
    assert done.returncode == USAGE and "column 0 is 'a' in TRAIN and 'name' in standard input" in done.stderr
    assert done.stdout == ""
    # What a column is, where rows are compared by it.
    write("q.csv", "c", "a", "b")
    done = vicinal("lof", "train.csv", "--drop", "class", "-k", 3, "--save-model", "m", "--top", 0)
    for option, role in (("--id", "is the id"), ("--label", "is the label"), ("--drop", "is dropped")):
        done = vicinal("lof", "q.csv", "--model", "m", option, 0)
        assert done.returncode == DATA and f"q.csv: column 'c' {role}, but rows are compared by it" in done.stderr


def test_what_a_file_lacks_is_refused_beside_a_model(ok, vicinal, tmp_path, write):
    write("train.csv", "name", "a", "b", "c", "class")
    ok("kmeans", "train.csv", "-c", 2, "--id", "name", "--label", "class", "--save-model", "k")
    np.save(tmp_path / "q.npy", np.ones((2, 3)))
    for file, option, value, sentence in (
        ("train.csv", "--label", "clas", "'train.csv' has no column 'clas' for label"),
        ("train.csv", "--drop", "nonsense", "'train.csv' has no column 'nonsense' for drop"),
        ("q.npy", "--label", "class", "label: applies to CSV"),
        ("q.npy", "--drop", "0", "drop: applies to CSV"),
    ):
        done = vicinal("kmeans", file, "--model", "k", option, value)
        assert done.returncode == USAGE and sentence in done.stderr, done.stderr
    told = ok("kmeans", "train.csv", "--model", "k", "--drop", "class", "-o", "-")
    assert told == ok("kmeans", "train.csv", "--model", "k", "-o", "-")


def test_positions_that_a_model_knows_are_columns_of_a_file_with_names(ok, vicinal, tmp_path, write):
    write("bare.csv", "name", "a", "b", "c", "class", header=[])
    write("full.csv", "name", "a", "b", "c", "class")
    ok("lof", "bare.csv", "-k", 3, "--id", 0, "--label", 4, "--save-model", "m", "--top", 0)
    by_model = scores(ok("lof", "bare.csv", "--model", "m", "-o", "-", "--top", 0))
    told = ok("lof", "full.csv", "--model", "m", "--id", "name", "-o", "-", "--top", 0)
    assert told.startswith("name,lof,") and scores(told) == by_model and len(by_model) == 12
    # So they are in rows from standard input.
    text = (tmp_path / "full.csv").read_text()
    for ids, heading in (((), "row"), (("--id", 0), "name"), (("--id", "name"), "name")):
        told = ok("lof", "-", "--model", "m", "--header", *ids, input=text)
        assert told.splitlines()[0] == f"{heading},lof,outlier" and scores(told) == by_model, ids
    told = ok("lof", "-", "--model", "m", "--id", 0, input=(tmp_path / "bare.csv").read_text())
    assert told.splitlines()[0] == "id,lof,outlier" and scores(told) == by_model
    assert ok("lof", "-", "--model", "m", input="") == "row,lof,outlier\n"

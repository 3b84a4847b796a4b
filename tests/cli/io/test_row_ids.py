"""--id: rows are called by their ids in the outputs of every command; names of columns and of labels in outputs;
--label and --labels; and what is written as one array."""

import csv
import ctypes
import gzip
import json
import os
import struct
import threading

import numpy as np
import pytest

DATA = 3
USAGE = 2
MEMORY = 4


@pytest.fixture
def files(tmp_path):
    """train.csv and test.csv with ids: texts in `who`, numbers in `number`."""
    generator = np.random.default_rng(4)
    made = {}
    for name, rows in (("train", 50), ("test", 20)):
        table = generator.normal(size=(rows, 3))
        kinds = np.where(table[:, 0] > 0, "up", "down")
        who = [f"{name} é{i}" + (', "x"' if i == 3 else "") for i in range(rows)]
        quoted = ['"' + text.replace('"', '""') + '"' if "," in text else text for text in who]
        lines = ["who,a,b,c,kind,number"]
        lines += [f"{quoted[i]},{','.join(repr(float(v)) for v in table[i])},{kinds[i]},{100 + i}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        np.save(tmp_path / f"{name}.npy", table)
        np.save(tmp_path / f"{name}_kinds.npy", kinds)
        made[name] = table, who, kinds
    return made


def rows_of(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as lines:
        return list(csv.reader(lines))


COMMANDS = {
    "classify": ("train.csv", "test.csv", "--label", "kind", "--drop", "number"),
    "regress": ("train.csv", "test.csv", "--target", "c", "--drop", "number", "--drop", "kind"),
    "lof": ("train.csv", "test.csv", "--label", "kind", "--drop", "number", "-k", 5),
    "lle": ("train.csv", "test.csv", "--label", "kind", "--drop", "number", "-k", 6),
    "kmeans": ("test.csv", "--label", "kind", "--drop", "number", "-c", 3),
    "radius": ("test.csv", "-r", 1, "--count", "--drop", "number", "--drop", "kind"),
    "lof within": ("test.csv", "--drop", "number", "--drop", "kind", "-k", 5),
    "lle within": ("test.csv", "--drop", "number", "--drop", "kind", "-k", 6),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_rows_are_called_by_their_ids(ok, tmp_path, files, name):
    kind, words = name.split()[0], COMMANDS[name]
    ok(kind, *words, "--drop", "who", "-o", "numbers.csv.gz")
    ok(kind, *words, "--id", "who", "-o", "ids.csv")
    numbers, ids = rows_of(tmp_path / "numbers.csv.gz"), rows_of(tmp_path / "ids.csv")
    assert numbers[0][0] == "row" and [row[0] for row in numbers[1:]] == [str(i) for i in range(20)]
    assert ids[0][0] == "who" and [row[0] for row in ids[1:]] == files["test"][1]
    assert [row[1:] for row in ids] == [row[1:] for row in numbers]
    if kind != "kmeans" and "--count" not in words:
        truth = ["--test-labels", "test_kinds.npy"] if kind == "classify" else []
        ok(kind, *words, *truth, "--id", "who", "--report", "page.html")
        page = (tmp_path / "page.html").read_text()
        assert kind == "lle" or any(text in page for text in files["test"][1] if '"' not in text)
    shown = ok(kind, *words, "--id", "who")
    assert shown.splitlines()[0].split()[0] in ("who", "rank", "cluster", "accuracy", "target", "piece")
    if kind in ("lof", "lle", "kmeans"):
        ok(kind, *words, "--id", "who", "-o", "ids.npz")
        assert np.load(tmp_path / "ids.npz")["row_ids"].tolist() == files["test"][1]


def test_neighbors_are_called_by_their_ids(ok, ok_json, vicinal, tmp_path, files):
    drop = ("--drop", "kind", "--drop", "number")
    (table, who, _), (_, others, _) = files["train"], files["test"]
    for verb, asked in (("knn", ["-k", 3]), ("radius", ["-r", 0.8])):
        for queries in ([], ["test.csv"]):
            names = others if queries else who
            common = (verb, "train.csv", *queries, *asked)
            ok(*common, *drop, "--drop", "who", "-o", "numbers.csv")
            ok(*common, *drop, "--id", "who", "-o", "ids.csv")
            numbers, ids = rows_of(tmp_path / "numbers.csv"), rows_of(tmp_path / "ids.csv")
            assert ids[0] == numbers[0] == ["row", "rank", "id", "distance"] and len(ids) > 20
            assert ids[1:] == [[names[int(row[0])], row[1], who[int(row[2])], row[3]] for row in numbers[1:]]
            ok(*common, *drop, "--id", "who", "-o", "g.npz")
            arrays = np.load(tmp_path / "g.npz")
            assert arrays["row_ids"].tolist() == names and arrays["table_ids"].tolist() == who
            assert arrays["ids"].ravel().tolist() == [int(row[2]) for row in numbers[1:]]
    told = ok_json("knn", "train.csv", "test.csv", "-k", 1, "--id", "number", "--drop", "kind", "--drop", "who")
    assert [row["row"] for row in told["first_rows"]] == list(range(100, 110))
    assert all(100 <= row["ids"][0] < 150 for row in told["first_rows"])
    assert ok("knn", "train.csv", "-k", 1, "--id", "who", *drop, "--report", "page.html").splitlines()[0].split()[0] == "who"
    assert "row train é" in (tmp_path / "page.html").read_text()
    ok("knn", "train.csv", "-k", 2, "--id", "number", "--drop", "kind", "--drop", "who", "--layout", "scipy", "-o", "m.npz")
    assert np.load(tmp_path / "m.npz")["table_ids"].tolist() == list(range(100, 150))
    # Where rows are left out, those that are left keep their ids.
    lines = (tmp_path / "train.csv").read_text().splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[1], "NA")
    (tmp_path / "gaps.csv").write_text("\n".join(lines) + "\n")
    ok("knn", "gaps.csv", "-k", 2, "--missing", "drop", "--id", "who", *drop, "-o", "kept.csv")
    kept = rows_of(tmp_path / "kept.csv")[1:]
    assert [row[0] for row in kept[::2]] == who[:2] + who[3:] and {row[2] for row in kept} <= set(who) - {who[2]}
    for words in (("knn", "train.csv", "test.npy"), ("knn", "test.npy")):
        done = vicinal(*words, *drop[:0], "-k", 1, "--id", "who", "--drop", "kind", "--drop", "number")
        assert done.returncode == USAGE and "test.npy' is npy" in done.stderr


def test_ids_and_names_stay_with_a_table(ok, vicinal, tmp_path, files):
    text = (tmp_path / "train.csv").read_text()
    common = ("--id", "who", "--label", "kind", "--drop", "number")
    ok("convert", "train.csv", "c.csv", *common)
    ok("impute", "train.csv", "-o", "i.csv", *common)
    expected = [[*row[:5]] for row in csv.reader(text.splitlines())]
    assert rows_of(tmp_path / "c.csv") == rows_of(tmp_path / "i.csv") == expected
    assert ok("impute", "train.csv", "-o", "-", *common) == (tmp_path / "i.csv").read_text()
    ok("convert", "train.csv", "c.jsonl", *common)
    first = json.loads((tmp_path / "c.jsonl").read_text().splitlines()[0])
    assert list(first) == ["who", "a", "b", "c", "kind"] and first["who"] == files["train"][1][0]
    ok("convert", "train.csv", "c.npz", "--id", "number", "--drop", "who", "--drop", "kind")
    arrays = np.load(tmp_path / "c.npz")
    assert arrays["row_ids"].tolist() == list(range(100, 150)) and arrays["table"].tolist() == files["train"][0].tolist()
    done = vicinal("convert", "train.csv", "c.npy", "--id", "who", "--drop", "kind")
    assert done.returncode == USAGE and "no place for the ids" in done.stderr and not (tmp_path / "c.npy").exists()
    lines = text.splitlines()
    (tmp_path / "gaps.csv").write_text("\n".join([lines[0], lines[1].removesuffix("100"), *lines[2:]]) + "\n")
    done = vicinal("convert", "gaps.csv", "g.csv", "--id", "number", "--label", "kind", "--drop", "who")
    assert done.returncode == DATA and "line 2, column 'number' is empty (a missing id)" in done.stderr
    lines[5] = lines[5].replace(lines[5].split(",")[2], "")
    (tmp_path / "gaps.csv").write_text("\n".join(lines) + "\n")
    ok("convert", "gaps.csv", "kept.csv", "--missing", "drop", *common)
    assert rows_of(tmp_path / "kept.csv") == expected[:5] + expected[6:]


def test_names_of_columns_in_outputs(ok, ok_json, tmp_path, files):
    drop = ("--drop", "number", "--drop", "kind", "--drop", "who")
    assert ok("kmeans", "train.csv", "-c", 2, *drop).splitlines()[0].split() == ["cluster", "rows", "a", "b", "c"]
    assert ok("kmeans", "train.npy", "-c", 2).splitlines()[0].split() == ["cluster", "rows", "c0", "c1", "c2"]
    ok("kmeans", "train.csv", "-c", 2, *drop, "-o", "k.npz", "--save-model", "m")
    assert np.load(tmp_path / "k.npz")["columns"].tolist() == ["a", "b", "c"]
    ok("kmeans", "test.csv", "--model", "m", "-o", "k.npz")
    assert np.load(tmp_path / "k.npz")["columns"].tolist() == ["a", "b", "c"]
    ok("regress", "train.csv", "test.csv", "--target", "c", *drop, "-o", "one.csv")
    ok("regress", "train.csv", "test.csv", "--target", "c", "--target", 1, *drop, "-o", "two.csv")
    ok("regress", "train.npy", "test.npy", "--targets", "train.npy", "-o", "none.csv")
    assert [rows_of(tmp_path / f"{name}.csv")[0] for name in ("one", "two", "none")] == [
        ["row", "c"], ["row", "c", "a"], ["row", "value_0", "value_1", "value_2"]]  # fmt: skip
    assert ok_json("regress", "train.csv", "test.csv", "--target", "c", *drop)["scores"][0]["name"] == "c"


def test_labels_in_a_file_of_their_own(ok, ok_json, vicinal, tmp_path, files):
    drop = ("--drop", "number", "--drop", "who")
    _, _, kinds = files["train"]
    by_column = ok_json("lof", "train.csv", "--label", "kind", *drop, "-k", 5, "--normal", "down")["labels"]
    assert by_column == ok_json("lof", "train.npy", "--labels", "train_kinds.npy", "-k", 5, "--normal", "down")["labels"]
    assert by_column["roc_auc"] > 0
    of_queries = ok_json("lof", "train.csv", "test.csv", "--label", "kind", *drop, "-k", 5)["labels"]
    assert of_queries == ok_json("lof", "train.npy", "test.npy", "--labels", "test_kinds.npy", "-k", 5)["labels"]
    for words in (("train.csv", "--label", "kind", *drop), ("train.npy", "--labels", "train_kinds.npy")):
        ok("lle", *words, "-k", 6, "-o", "e.csv", "--report", "e.html")
        found = rows_of(tmp_path / "e.csv")
        assert found[0] == ["row", "y0", "y1", "kind" if "--label" in words else "label"]
        assert [row[3] for row in found[1:]] == kinds.tolist() and "down" in (tmp_path / "e.html").read_text()
        ok("lle", *words, "-k", 6, "-o", "e.npz")
        assert np.load(tmp_path / "e.npz")["labels"].tolist() == kinds.tolist()
    for verb in ("lof", "lle", "kmeans"):
        done = vicinal(verb, "train.csv", "--label", "kind", "--labels", "train_kinds.npy", *drop)
        assert done.returncode == USAGE and "--labels: cannot be combined with --label" in done.stderr
        done = vicinal(verb, "train.npy", "--labels", "test_kinds.npy")
        assert done.returncode == DATA and "--labels: test_kinds.npy has 20 labels" in done.stderr


def test_one_array_from_standard_input(ok, vicinal, tmp_path, files):
    drop = ("--drop", "number", "--drop", "who")
    text = (tmp_path / "test.csv").read_text()
    ok("classify", "train.csv", "-", "--label", "kind", *drop, "-o", "labels.npy", input=text)
    answers = ok("classify", "train.csv", "test.csv", "--label", "kind", *drop, "-o", "-")
    assert np.load(tmp_path / "labels.npy").tolist() == [row[1] for row in csv.reader(answers.splitlines()[1:])]
    np.save(tmp_path / "codes.npy", (files["train"][2] == "up").astype(np.int64))
    ok("classify", "train.npy", "test.npy", "--labels", "codes.npy", "-o", "labels.npy")
    assert np.load(tmp_path / "labels.npy").dtype == np.int64
    ok("kmeans", "-", "--drop", "kind", *drop, "-c", 3, "-o", "k.npy", input=text)
    clusters = ok("kmeans", "test.csv", "--drop", "kind", *drop, "-c", 3, "-o", "-")
    assert np.load(tmp_path / "k.npy").tolist() == [int(row[1]) for row in csv.reader(clusters.splitlines()[1:])]
    done = vicinal("classify", "train.csv", "test.csv", "--label", "kind", *drop, "--proba", "-o", "p.npy")
    assert done.returncode == USAGE and "--proba" in done.stderr
    done = vicinal("kmeans", "test.csv", "--drop", "kind", "--drop", "number", "--id", "who", "-o", "classical")
    assert done.returncode == USAGE and "--id" in done.stderr and not list(tmp_path.glob("classical*"))


def test_ids_are_part_of_the_plan(vicinal, tmp_path, files):
    rows = [f"{'x' * 40}{i},{i},{i % 7}" for i in range(20000)]
    (tmp_path / "long.csv").write_text("\n".join(["who,a,b", *rows]) + "\n")

    def planned(*words):
        done = vicinal(*words, "--explain", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["plan"]["memory_bytes"]

    for words in (("knn", "long.csv", "-k", 2), ("kmeans", "long.csv", "-c", 2), ("lof", "long.csv", "-k", 2)):
        without, with_ids = planned(*words, "--drop", "who"), planned(*words, "--id", "who")
        assert with_ids > without + 20000 * 40
        done = vicinal(*words, "--id", "who", "--memory-limit", without)
        assert done.returncode == 4 and str(with_ids) in done.stderr.replace(" ", ""), done.stderr
        assert vicinal(*words, "--id", "who", "--memory-limit", with_ids).returncode == 0


def test_ids_that_are_no_array_are_refused_before_the_work(vicinal, ok, tmp_path):
    """Texts of an npz are all as long as the longest, and in Unicode. What the command could not do is not reached."""
    names = [f"row {i}" for i in range(400)]
    names[30] = "x" * 300_000
    rows = [f"{name},{i},{i % 7},{i % 5}" for i, name in enumerate(names)]
    (tmp_path / "long.csv").write_text("\n".join(["who,a,b,c", *rows]) + "\n")
    rows[30] = f"\xe9,{rows[30].split(',', 1)[1]}"
    (tmp_path / "latin.csv").write_text("\n".join(["who,a,b,c", *rows]) + "\n", encoding="latin-1")
    searches = ("knn", "-k", 900), ("radius", "-r", -1), ("kmeans", "-c", 900), ("lof", "-k", 900), ("lle", "-k", 900)
    for words in searches:
        common = (words[0], "long.csv", *words[1:], "--id", "who", "--memory-limit", "300M")
        done = vicinal(*common, "-o", "found.npz")
        assert done.returncode == MEMORY, done.stderr
        assert "long.csv: an npz with 400 texts as long as that of row 30 (300000 characters)" in done.stderr
        assert "write .csv" in done.stderr
        assert "characters" not in vicinal(*common, "-o", "found.csv").stderr
        done = vicinal(words[0], "latin.csv", *words[1:], "--id", "who", "-o", "found.npz")
        assert done.returncode == DATA and "latin.csv: the text '?' of row 30 is not UTF-8" in done.stderr, done.stderr
    done = vicinal("knn", "long.csv", "-k", 2, "--id", "who", "--memory-limit", "300M", "-o", "found.csv")
    assert done.returncode == 0 and names[30] in (tmp_path / "found.csv").read_text()
    done = vicinal("impute", "long.csv", "--id", "who", "--memory-limit", "300M", "-o", "found.npz")
    assert done.returncode == MEMORY and "long.csv: an npz with 400 texts" in done.stderr


def test_a_position_is_the_same_column_in_both_tables(ok, vicinal, tmp_path, files):
    drop = ("--drop", "kind", "--drop", "number")
    lines = list(csv.reader((tmp_path / "test.csv").read_text().splitlines()))
    for name, order in (("moved", [1, 2, 3, 4, 5, 0]), ("without", [1, 2, 3, 4, 5])):
        with open(tmp_path / f"{name}.csv", "w", newline="") as out:
            csv.writer(out).writerows([[line[j] for j in order] for line in lines])
    for verb in (("knn", "-k", 2), ("radius", "-r", 1)):
        ok(verb[0], "train.csv", "moved.csv", *verb[1:], "--id", "who", *drop, "-o", "named.csv")
        ok(verb[0], "train.csv", "moved.csv", *verb[1:], "--id", 0, *drop, "-o", "numbered.csv")
        assert (tmp_path / "numbered.csv").read_text() == (tmp_path / "named.csv").read_text()
        done = vicinal(verb[0], "train.csv", "without.csv", *verb[1:], "--id", 0, *drop)
        assert done.returncode == USAGE and "without.csv" in done.stderr
        assert "--id: column 0 of train.csv is 'who', and without.csv has no column of that name" in done.stderr
    for name in ("train", "test"):  # without names a position is all there is
        rows = files[name][0]
        np.savetxt(tmp_path / f"plain_{name}.csv", np.c_[np.arange(len(rows)) + 7, rows], delimiter=",")
    ok("knn", "plain_train.csv", "plain_test.csv", "-k", 2, "--id", 0, "-o", "plain.csv")
    assert rows_of(tmp_path / "plain.csv")[1][0].startswith("7")


class Opened:
    """How often files are opened while this lives (Linux's inotify)."""

    def __init__(self, *paths):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.inotify = self.libc.inotify_init1(os.O_NONBLOCK)
        in_open = 0x20
        watch = self.libc.inotify_add_watch
        self.names = {watch(self.inotify, os.fsencode(path), in_open): path.name for path in paths}

    def counts(self):
        counts = dict.fromkeys(self.names.values(), 0)
        try:
            while True:
                events = os.read(self.inotify, 1 << 16)
                while events:
                    watch, _, _, length = struct.unpack_from("iIII", events)
                    counts[self.names[watch]] += 1
                    events = events[16 + length:]
        except BlockingIOError:
            return counts
        finally:
            os.close(self.inotify)


def test_a_table_is_looked_at_once(ok, tmp_path, files):
    drop = ("--drop", "number")
    for words in (("knn", "-k", 2, "--drop", "kind"), ("radius", "-r", 1, "--drop", "kind"),
                  ("classify", "--label", "kind", "-k", 2), ("regress", "--target", "c", "--drop", "kind", "-k", 2),
                  ("lof", "--label", "kind", "-k", 5), ("lle", "--label", "kind", "-k", 6)):  # fmt: skip
        opened = Opened(tmp_path / "train.csv", tmp_path / "test.csv")
        ok(words[0], "train.csv", "test.csv", *words[1:], *drop, "--id", 0)
        assert max(opened.counts().values()) <= 2, words  # and read


PIPED = {
    "knn": ("train.csv test.csv -k 2 --drop 4 --drop 5 --id 0", "-o"),
    "radius": ("train.csv test.csv -r 1 --drop 4 --drop 5 --id 0", "-o"),
    "kmeans": ("train.csv --label 4 --drop 5 --drop 0 -c 3", "--save-model"),
    "lof": ("train.csv --label 4 --drop 5 --id 0 -k 3 --novelty", "--save-model"),
    "lof of others": ("train.csv test.csv --label 4 --drop 5 --id 0 -k 3", "-o"),
    "lle": ("train.csv --label 4 --drop 5 --id 0 -k 6", "--save-model"),
    "lle of others": ("train.csv test.csv --label 4 --drop 5 --id 0 -k 6", "-o"),
    "classify": ("train.csv --label 4 --drop 5 --id 0 -k 2", "--save-model"),
    "classify by two": ("train.csv test.csv --label 4 --label group --drop 5 --id 0 -k 2", "-o"),
    "regress": ("train.csv --target 2 --target 3 --drop 4 --drop 5 --id 0 -k 2", "--save-model"),
    "regress by names": ("train.csv --target c --drop who --drop kind --drop number -k 2", "--save-model"),
    "regress others": ("train.csv test.csv --target 2 --drop 4 --drop 5 --id 0 -k 2 --json", "-o"),
}


@pytest.mark.parametrize("name", PIPED)
def test_a_pipe_is_looked_at_before_it_is_read(ok, vicinal, tmp_path, files, name):
    """A named pipe has nothing more to tell, and nobody who writes, once it was read: of either table, or of both."""
    line, written = PIPED[name]
    words = [name.split()[0], *line.split(), "--threads", 1]
    if "group" in line:
        for table in ("train.csv", "test.csv"):
            rows = (tmp_path / table).read_text().splitlines()
            grouped = [row + (f",{'xyz'[i % 3]}" if i else ",group") for i, row in enumerate(rows)]
            (tmp_path / table).write_text("\n".join(grouped) + "\n")
    out = "found.csv" if written == "-o" else "model"
    said = ok(*words, written, f"stored {out}")
    tables = [word for word in words if str(word).endswith(".csv")]
    for piped in [tables[:1], tables[1:], tables]:
        for table in piped:
            os.mkfifo(tmp_path / f"pipe of {table}")
            text = (tmp_path / table).read_text()
            threading.Thread(target=(tmp_path / f"pipe of {table}").write_text, args=(text,), daemon=True).start()
        done = vicinal(*[f"pipe of {word}" if word in piped else word for word in words], written, out, timeout=20)
        assert done.returncode == 0, (piped, done.stderr)
        assert (tmp_path / out).read_bytes() == (tmp_path / f"stored {out}").read_bytes(), piped
        if "--json" in words:
            assert json.loads(done.stdout)["scores"] == json.loads(said)["scores"]
        for table in piped:
            (tmp_path / f"pipe of {table}").unlink()


def test_a_name_that_is_a_number_is_no_position(ok, vicinal, tmp_path):
    (tmp_path / "rows.csv").write_text("7,x,y\n31,1,2\n32,3,5\n33,8,8\n")
    (tmp_path / "asked.csv").write_text("x,7,y\n3,41,4\n8,42,9\n")
    (tmp_path / "lacking.csv").write_text("x,y\n3,4\n8,9\n")
    for words in (("knn", "-k", 1), ("radius", "-r", 2)):
        ok(words[0], "rows.csv", "asked.csv", *words[1:], "--header", "--id", 0, "-o", "found.csv")
        found = [line[:2] for line in rows_of(tmp_path / "found.csv")[1:]]
        assert [row for row, _ in found] == ["41", "42"], words
        done = vicinal(words[0], "rows.csv", "lacking.csv", *words[1:], "--header", "--id", 0)
        assert done.returncode == USAGE, done.stderr
        assert "--id: column 0 of rows.csv is '7', and lacking.csv has no column of that name" in done.stderr
    asked = (tmp_path / "asked.csv").read_text()
    done = vicinal("lof", "rows.csv", "-", "-k", 1, "--header", "--id", 0, input=asked)
    assert done.returncode == USAGE and "--id: column 0 is '7' in TRAIN and 'x' in" in done.stderr, done.stderr


def test_convert_names_the_file_that_ids_come_from(vicinal, tmp_path):
    (tmp_path / "latin.csv").write_text("who,a\nx,1\n\xe9,2\n", encoding="latin-1")
    for out in (("o.npz",), ("o.dat", "--to-format", "npz")):
        done = vicinal("convert", "latin.csv", *out, "--id", 0)
        assert done.returncode == DATA and "latin.csv: the text '?' of row 1 is not UTF-8" in done.stderr, done.stderr
        assert not (tmp_path / out[0]).exists()
    assert vicinal("convert", "latin.csv", "o.npz", "--to-format", "csv", "--id", 0).returncode == 0

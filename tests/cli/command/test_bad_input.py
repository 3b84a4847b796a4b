"""Bad input: the documented exit code, one sentence on stderr that names what is wrong, and nothing left behind."""

import gzip
import lzma
import os
import struct
import subprocess

import numpy as np
import pytest

USAGE, DATA, MEMORY, DEVICE = 2, 3, 4, 5


def npy_with_shape(shape, data):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def prepare(folder):
    """Every file that the cases below name."""
    generator = np.random.default_rng(1)
    good = generator.normal(size=(20, 3))
    np.save(folder / "good.npy", good)
    np.save(folder / "wide.npy", generator.normal(size=(20, 4)))
    np.save(folder / "labels.npy", np.arange(20) % 2)
    np.save(folder / "short_labels.npy", np.arange(7) % 2)
    np.save(folder / "new_labels.npy", np.arange(20) % 3)
    (folder / "header_only.csv").write_text("a,b,c\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3,4\n5,6,7\n")
    (folder / "text.csv").write_text("a,b\n1,2\n3,4\n5,oak\n")
    (folder / "nan.csv").write_text("a,b\n1,2\n3,nan\n5,6\n")
    (folder / "missing_value.csv").write_text("a,b\n1,2\n3,\n5,6\n")
    (folder / "labelled.csv").write_text("a,b,kind\n" + "".join(f"{i},{i % 5},{'xy'[i % 2]}\n" for i in range(12)))
    (folder / "unseen.csv").write_text("a,b,kind\n1,2,x\n3,4,zebra\n")
    holed = good.copy()
    holed[4, 2] = np.nan
    np.save(folder / "nan.npy", holed)
    holed[4, 2] = np.inf
    np.save(folder / "inf.npy", holed)
    np.save(folder / "objects.npy", np.array([["a", 1]], dtype=object), allow_pickle=True)
    np.save(folder / "text.npy", np.array([["a", "b"]]))
    np.save(folder / "complex.npy", np.ones((3, 2), complex))
    np.save(folder / "no_rows.npy", np.empty((0, 3)))
    np.save(folder / "no_columns.npy", np.empty((3, 0)))
    np.save(folder / "huge_integers.npy", np.array([[2**53 + 1, 1], [1, 2]], np.int64))
    (folder / "lying.npy").write_bytes(npy_with_shape("(1000, 3)", good.tobytes()))
    (folder / "overflowing.npy").write_bytes(npy_with_shape("(4611686018427387904, 4)", good.tobytes()))
    (folder / "negative.npy").write_bytes(npy_with_shape("(-2, 3)", good.tobytes()))
    (folder / "empty.npy").write_bytes(b"")
    (folder / "noise.bin").write_bytes(bytes(generator.integers(0, 256, 500, dtype=np.uint8)))
    np.savez(folder / "two.npz", a=good, b=good)
    whole = (folder / "two.npz").read_bytes()
    (folder / "truncated.npz").write_bytes(whole[: len(whole) // 2])
    packed = bytearray(gzip.compress((folder / "good.npy").read_bytes()))
    (folder / "truncated.npy.gz").write_bytes(packed[: len(packed) - 60])
    packed[-6] ^= 0xFF
    (folder / "wrong_crc.npy.gz").write_bytes(packed)
    idx = struct.pack(">BBBBII", 0, 0, 8, 2, 10, 4)
    (folder / "short.idx").write_bytes(idx + bytes(39))
    (folder / "long.idx").write_bytes(idx + bytes(41))
    (folder / "folder.npy").mkdir()
    rows = b"".join(struct.pack("<i3f", 3, *row) for row in good)
    (folder / "good.fvecs").write_bytes(rows)
    (folder / "vecs.bin").write_bytes(rows)
    (folder / "cut.fvecs").write_bytes(rows[:-2])
    (folder / "jumping.fvecs").write_bytes(rows[:48] + struct.pack("<i", 4) + rows[52:])
    (folder / "none.ivecs").write_bytes(struct.pack("<ii", 0, 0))
    (folder / "long.kmeans-binary").write_bytes(struct.pack("<ii4f", 2, 2, 1, 2, 3, 4) + b"z")
    (folder / "ids.txt").write_text("1 2 3\n2 4 5\n3 6\n4 7 8\n")
    (folder / "falling.svm").write_text("1 1:2 3:4\n0 3:4 2:5\n")
    (folder / "word.svm").write_text("1 1:2\n0 1:oak\n")
    (folder / "infinite.svm").write_text("1 1:2\n\n0 2:inf\n")
    (folder / "huge.svm").write_text("1 1:2\n0 1000000000000:1\n")
    (folder / "wide.svm").write_text("1 1:2\n0 900000000000:1\n")
    (folder / "bfloat16.npy").write_bytes(npy_with_shape("(2, 2)", bytes(8)).replace(b"'<f8'", b"'<V2'"))
    (folder / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40))
    (folder / "open_quote.csv").write_text('a,b\n1,2\n3,"4\n5,6\n')
    (folder / "stray_quote.csv").write_text('a,b\n1,2\n3,4"5\n')
    (folder / "too_large.csv").write_text("a,b\n1,2\n3,1e999\n")
    (folder / "comment.csv").write_text("a,b\n1,2\n#3,4\n")
    (folder / "packed_twice.gz").write_bytes(gzip.compress(gzip.compress(b"1,2\n3,4\n")))
    (folder / "truncated.csv.xz").write_bytes(lzma.compress(b"1,2\n" * 100)[:-20])
    np.save(folder / "thirds.npy", good / 3)
    np.save(folder / "bytes_and_more.npy", np.array([[1, 2], [3, 256]], np.int32))


# arguments, exit code, words that the sentence must have (lower case)
CASES = {
    "header only": ("knn header_only.csv", DATA, ["header_only.csv"]),
    "ragged row": ("knn ragged.csv -k 1", DATA, ["ragged.csv", "line 4"]),
    "text in a number column": ("knn text.csv -k 1", DATA, ["text.csv", "line 4", "'b'", "oak"]),
    "nan in csv": ("knn nan.csv -k 1", DATA, ["nan"]),
    "missing value in csv": ("knn missing_value.csv -k 1", DATA, ["missing_value.csv", "line 3"]),
    "nan in npy": ("knn nan.npy", DATA, ["nan.npy", "row 4", "column 2", "finite"]),
    "inf in npy": ("knn inf.npy", DATA, ["inf.npy", "row 4", "column 2", "finite"]),
    "nan in queries": ("knn good.npy nan.npy", DATA, ["nan.npy", "row 4", "column 2", "finite"]),
    "k is 0": ("knn good.npy -k 0", USAGE, ["k", "0"]),
    "k is negative": ("knn good.npy -k -3", USAGE, ["k", "-3"]),
    "k is n within itself": ("knn good.npy -k 20", USAGE, ["20", "19"]),
    "k is n + 1": ("knn good.npy good.npy -k 21", USAGE, ["21", "20"]),
    "k is no number": ("knn good.npy -k many", USAGE, ["-k"]),
    "other column count": ("knn good.npy wide.npy", USAGE, ["3", "4", "column"]),
    "missing file": ("knn nowhere.npy", DATA, ["nowhere.npy"]),
    "a folder as table": ("knn folder.npy", DATA, ["folder.npy"]),
    "truncated gzip": ("knn truncated.npy.gz", DATA, ["truncated.npy.gz"]),
    "wrong gzip checksum": ("knn wrong_crc.npy.gz", DATA, ["wrong_crc.npy.gz"]),
    "lying npy header": ("knn lying.npy", DATA, ["lying.npy"]),
    "overflowing npy header": ("knn overflowing.npy", DATA, ["overflowing.npy"]),
    "negative npy header": ("knn negative.npy", DATA, ["negative.npy"]),
    "object dtype": ("knn objects.npy", DATA, ["objects.npy", "object"]),
    "text dtype": ("knn text.npy", DATA, ["text.npy"]),
    "complex dtype": ("knn complex.npy", DATA, ["complex.npy"]),
    "no rows": ("knn no_rows.npy", DATA, ["row"]),
    "no columns": ("knn no_columns.npy", DATA, ["column"]),
    "inexact integers": ("knn huge_integers.npy", DATA, ["huge_integers.npy"]),
    "empty file": ("knn empty.npy", DATA, ["empty.npy"]),
    "unknown bytes": ("knn noise.bin", DATA, ["noise.bin"]),
    "truncated npz": ("knn truncated.npz", DATA, ["truncated.npz"]),
    "npz with two tables": ("knn two.npz", USAGE, ["two.npz", "a", "b"]),
    "npz without that member": ("knn two.npz --member c", USAGE, ["two.npz", "'c'"]),
    "short idx": ("knn short.idx", DATA, ["short.idx"]),
    "long idx": ("knn long.idx", DATA, ["long.idx"]),
    "unknown metric": ("knn good.npy --metric taxicab", USAGE, ["taxicab", "manhattan"]),
    "p below 1": ("knn good.npy --metric minkowski --p 0.5", USAGE, ["p:", "at least 1"]),
    "unknown option": ("knn good.npy --frobnicate", USAGE, ["--frobnicate", "--help"]),
    "unknown subcommand": ("frobnicate good.npy", USAGE, ["frobnicate"]),
    "no subcommand": ("", USAGE, ["subcommand"]),
    "no table": ("knn", USAGE, ["table"]),
    "negative threads": ("knn good.npy --threads -2", USAGE, ["thread", "-2"]),
    "memory limit too small": ("knn good.npy --memory-limit 100", MEMORY, ["100"]),
    "memory limit nonsense": ("knn good.npy --memory-limit lots", USAGE, ["--memory-limit", "lots"]),
    "memory limit negative": ("knn good.npy --memory-limit -5G", USAGE, ["--memory-limit", "-5g"]),
    "cuda": ("knn good.npy --device cuda", DEVICE, ["cuda"]),
    "second cuda device": ("knn good.npy --device cuda:1", DEVICE, ["cuda:1"]),
    "unknown device": ("knn good.npy --device abacus", USAGE, ["abacus"]),
    "output into a missing folder": ("knn good.npy -o missing/out.npz", DATA, ["missing"]),
    "output onto a folder": ("kmeans good.npy --clusters 2 -o folder.npy/", DATA, ["folder.npy", "is a folder"]),
    "a folder for parts that cannot be made": ("knn good.npy -o missing/out/", DATA, ["missing/out/"]),
    "output of unknown kind": ("knn good.npy -o out.parquet", USAGE, ["out.parquet", ".npz"]),
    "negative radius": ("radius good.npy -r -1", USAGE, ["radius", "negative"]),
    "no radius": ("radius good.npy", USAGE, ["radius"]),
    "no labels": ("classify good.npy good.npy", USAGE, ["--label"]),
    "both kinds of labels": ("classify labelled.csv labelled.csv --label kind --labels labels.npy", USAGE, ["--labels"]),
    "label column missing": ("classify labelled.csv labelled.csv --label species", (USAGE, DATA), ["species"]),
    "unseen test label": ("classify labelled.csv unseen.csv --label kind", DATA, ["unseen.csv", "zebra", "row 1"]),
    "labels of another length": ("classify good.npy good.npy --labels short_labels.npy", DATA, ["7", "20"]),
    "test labels of another length": (
        "classify good.npy good.npy --labels labels.npy --test-labels short_labels.npy -o out.csv",
        DATA,
        ["short_labels.npy", "7", "20"],
    ),
    "unseen label in a file": (
        "classify good.npy good.npy --labels labels.npy --test-labels new_labels.npy -o out.csv",
        DATA,
        ["new_labels.npy", "'2'", "row 2"],
    ),
    "report without truth": ("classify good.npy good.npy --labels labels.npy --report r.html", USAGE, ["--report"]),
    "image shape": (
        "classify good.npy good.npy --labels labels.npy --test-labels labels.npy --image-shape 2x2",
        USAGE,
        ["2x2", "3"],
    ),
    "unknown shape": ("generate sphere", USAGE, ["sphere", "moons"]),
    "negative rows": ("generate moons -n -5", USAGE, ["rows", "-5"]),
    "columns of moons": ("generate moons -d 7", USAGE, ["--cols", "moons"]),
    "filter of another length": ("knn good.npy --filter short_labels.npy", DATA, ["7", "20"]),
    "fvecs or ivecs": ("knn vecs.bin", USAGE, ["vecs.bin", "fvecs or ivecs", "format"]),
    "truncated fvecs": ("knn cut.fvecs", DATA, ["cut.fvecs", "row 19", "truncated"]),
    "fvecs of two lengths": ("knn jumping.fvecs", DATA, ["jumping.fvecs", "row 3 has 4", "row 0 has 3"]),
    "ivecs without columns": ("knn none.ivecs", DATA, ["none.ivecs", "row 0", "0 columns"]),
    "k-means file too long": ("knn long.kmeans-binary", DATA, ["long.kmeans-binary", "25 bytes", "2 x 2", "24"]),
    "k-means text with a short line": ("knn ids.txt", DATA, ["ids.txt", "line 3", "2 fields"]),
    "libsvm indices that fall": ("knn falling.svm", DATA, ["falling.svm", "line 2", "'2:5'", "ascend"]),
    "libsvm value that is none": ("knn word.svm", DATA, ["word.svm", "line 2", "'1:oak'"]),
    "libsvm value that is infinite": ("knn infinite.svm", DATA, ["infinite.svm", "line 3", "'2:inf'", "finite"]),
    "libsvm row too long to be": ("knn huge.svm --memory-limit 1G", MEMORY, ["huge.svm", "sparse", "1000000000000"]),
    "libsvm too large when dense": ("knn wide.svm --memory-limit 1G", MEMORY, ["wide.svm", "sparse", "1.1 gb"]),
    "libsvm beyond its columns": ("knn falling.svm --sparse-columns -1", USAGE, ["--sparse-columns", "-1"]),
    "sparse columns of a csv": ("knn text.csv --sparse-columns 3", USAGE, ["text.csv", "columns"]),
    "bfloat16 unasked": ("knn bfloat16.npy", DATA, ["bfloat16.npy", "<v2", "dtype bfloat16"]),
    "damaged hdf5": ("knn cut.h5", (DATA, USAGE), ["cut.h5", "hdf5"]),
    "open quote": ("knn open_quote.csv -k 1", DATA, ["open_quote.csv", "line 3", "never closed"]),
    "stray quote": ("knn stray_quote.csv -k 1", DATA, ["stray_quote.csv", "line 3", "quote inside"]),
    "number beyond float64": ("knn too_large.csv -k 1", DATA, ["too_large.csv", "line 3", "'b'", "1e999"]),
    "comment unasked": ("knn comment.csv -k 1", DATA, ["comment.csv", "line 3", "#3"]),
    "comment of two characters": ("knn comment.csv --comment //", USAGE, ["--comment", "//"]),
    "comment that is a digit": ("knn comment.csv --comment 3", USAGE, ["comment", "'3'"]),
    "delimiter that is a letter": ("knn text.csv --delimiter x", USAGE, ["delimiter", "'x'"]),
    "packed twice": ("knn packed_twice.gz", DATA, ["packed_twice.gz", "twice"]),
    "truncated xz": ("knn truncated.csv.xz", DATA, ["truncated.csv.xz", "truncated"]),
    "another format than said": ("knn text.csv --format npy", DATA, ["text.csv", "not an npy file"]),
    "unknown format": ("knn text.csv --format parquet", USAGE, ["parquet"]),
    "convert to nothing known": ("convert good.npy out.parquet", USAGE, ["out.parquet", "--to-format"]),
    "convert into a missing folder": ("convert good.npy missing/out.csv", DATA, ["missing"]),
    "convert what does not fit": ("convert thirds.npy out.fvecs", DATA, ["out.fvecs", "row 0, column 0", "float32"]),
    "convert beyond bytes": ("convert bytes_and_more.npy out.bvecs", DATA, ["out.bvecs", "row 1, column 1", "256"]),
    "convert beyond bytes, lossy": ("convert bytes_and_more.npy out.bvecs --lossy", DATA, ["row 1, column 1", "256"]),
    "convert nan to text": ("convert nan.npy out.csv", DATA, ["out.csv", "row 4, column 2", "nan"]),
    "convert infinity to text": ("convert inf.npy out.libsvm", DATA, ["out.libsvm", "row 4, column 2", "inf"]),
    "convert to a type it lacks": ("convert good.npy out.idx --to-dtype float16", USAGE, ["out.idx", "float16"]),
    "convert labels away": ("convert labelled.csv out.npy --label kind", USAGE, ["out.npy", "labels"]),
    "convert labels of text": ("convert labelled.csv out.svm --label kind", USAGE, ["out.svm", "labels", "text"]),
    "convert a ragged row": ("convert ragged.csv out.npy", DATA, ["ragged.csv", "line 4", "3 fields"]),
    "info of nothing": ("info nowhere.npy", DATA, ["nowhere.npy"]),
    "missing config": ("knn good.npy --config nowhere.toml", USAGE, ["nowhere.toml"]),
}


@pytest.mark.parametrize("arguments, code, words", CASES.values(), ids=CASES.keys())
def test_bad_input(vicinal, tmp_path, arguments, code, words):
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    given = arguments.split()
    if given and given[0] in ("knn", "radius") and "-o" not in given:
        given += ["-o", "out.npz"]
    done = vicinal(*given)
    codes = code if isinstance(code, tuple) else (code,)
    assert done.returncode in codes, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("vicinal: error: ")
    for word in words:
        assert word in lines[0].lower(), lines[0]
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("arguments, words", [
    (["knn", "good.npy", "-k", 3, "-o", ""], "the argument after '-o' is empty"),
    (["knn", "good.npy", "", "-k", 3], "the argument after 'good.npy' is empty"),
    (["kmeans", "good.npy", "--clusters", "", "--init", "random"], "the argument after '--clusters' is empty"),
    (["knn", "good.npy", "-k", 3, "--output="], "'--output=' has no value"),
    ([""], "the first argument is empty"),
])
def test_an_argument_without_text_is_refused(vicinal, tmp_path, arguments, words):
    """A variable of the shell that is not set must not turn into an option that is not given."""
    prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = vicinal(*arguments)
    assert done.returncode == USAGE
    assert done.stderr == f"vicinal: error: {words}\n"
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_errors_are_json_too(vicinal, tmp_path):
    import json

    for arguments, code, name in (
        (["knn", "nowhere.npy", "--json"], DATA, "io"),
        (["knn", "--json", "--frobnicate"], USAGE, "invalid_argument"),
        (["knn", "nowhere.npy", "--json", "--device", "cuda"], DEVICE, "device_unavailable"),
    ):
        done = vicinal(*arguments)
        assert done.returncode == code
        error = json.loads(done.stdout)["error"]
        assert error["code"] == name
        assert f"vicinal: error: {error['message']}\n" == done.stderr


def test_disk_full_on_stdout(command, tmp_path):
    np.save(tmp_path / "good.npy", np.random.default_rng(0).normal(size=(20, 3)))
    with open("/dev/full", "w") as full:
        done = subprocess.run([command, "knn", "good.npy", "-q"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == DATA
    assert done.stderr.count("\n") == 1 and "standard output" in done.stderr


def test_disk_full(vicinal, tmp_path, small_disk):
    disk = small_disk("64k")
    np.save(tmp_path / "good.npy", np.random.default_rng(0).normal(size=(2000, 3)))
    for name in ("out.npz", "out.csv"):
        done = vicinal("knn", "good.npy", "-k", 50, "-o", disk / name)
        assert done.returncode == DATA
        assert done.stderr.count("\n") == 1 and name in done.stderr, done.stderr
        assert list(disk.iterdir()) == []
    (disk / "little").write_bytes(bytes(50000))
    for option, name in (("-o", "scores.csv"), ("-o", "scores.npz"), ("--save-model", "model.vlof"), ("--report", "report.html")):
        done = vicinal("lof", "good.npy", option, disk / name)
        assert done.returncode == DATA
        assert done.stderr.count("\n") == 1 and name in done.stderr, done.stderr
        assert [path.name for path in disk.iterdir()] == ["little"]


OUTPUTS = {
    "knn t.csv -k 2": {"-o": "o.csv", "--report": "r.html"},
    "radius t.csv -r 1": {"-o": "o.npz", "--report": "r.html"},
    "classify t.csv t.csv --label y": {"-o": "o.csv", "--save-model": "m", "--report": "r.html"},
    "regress t.csv t.csv --target a": {"-o": "o.npy", "--save-model": "m", "--report": "r.html"},
    "kmeans t.csv -c 2": {"-o": "o.csv", "--save-model": "m", "--report": "r.html"},
    "dbscan t.csv --drop y": {"-o": "o.csv", "--report": "r.html"},
    "hdbscan t.csv --drop y": {"-o": "o.npz", "--memberships": "s.npy", "--report": "r.html"},
    "optics t.csv --drop y --min-samples 2": {"-o": "o.csv", "--report": "r.html"},
    "lof t.csv -k 3": {"-o": "o.csv", "--save-model": "m", "--report": "r.html"},
    "lle t.csv -k 5": {"-o": "o.csv", "--save-model": "m", "--report": "r.html"},
    "cocluster e.csv --split-members 2": {"-o": "o.csv", "--cut-edges": "c.csv"},
    "generate swiss-roll -n 20": {"-o": "o.npy", "--parameters": "p.npy"},
    "generate blobs -n 20": {"-o": "o.npy", "--labels": "l.csv"},
}


@pytest.mark.parametrize("arguments", OUTPUTS)
def test_the_outputs_of_one_command_appear_together(vicinal, tmp_path, arguments):
    """A disk that is full at one of them leaves the others as they were."""
    generator = np.random.default_rng(0)
    rows = [f"{a},{b},{c},{i % 2}" for i, (a, b, c) in enumerate(generator.normal(size=(30, 3)))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    (tmp_path / "e.csv").write_text("".join(f"a{i},b{i}\na{i},b{i + 1}\n" for i in range(6)))
    outputs = OUTPUTS[arguments]
    for full in outputs:
        given = []
        for option, name in outputs.items():
            (tmp_path / name).unlink(missing_ok=True)
            if option == full:
                (tmp_path / name).symlink_to("/dev/full")
            else:
                (tmp_path / name).write_text("precious")
            given += [option, name]
        before = sorted(path.name for path in tmp_path.iterdir())
        done = vicinal(*arguments.split(), *given)
        assert done.returncode == DATA and outputs[full] in done.stderr, done.stderr
        assert {(tmp_path / name).read_bytes() for option, name in outputs.items() if option != full} == {b"precious"}
        assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / outputs[full]).unlink()
    done = vicinal(*arguments.split(), *given)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / name).read_bytes() != b"precious" for name in outputs.values())


def test_a_closed_pipe_is_quiet(command, tmp_path):
    np.save(tmp_path / "good.npy", np.random.default_rng(0).normal(size=(20, 3)))
    done = subprocess.run(
        f"'{command}' generate blobs -n 200000 | head -1", shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.startswith("x0,") and done.stderr == ""


def test_an_old_output_survives_a_failure(vicinal, tmp_path):
    (tmp_path / "out.npz").write_text("precious")
    assert vicinal("knn", "nowhere.npy", "-o", "out.npz").returncode == DATA
    assert (tmp_path / "out.npz").read_text() == "precious"

"""Bad input: the documented exit code, one sentence on stderr that names what is wrong, and nothing left behind."""

import gzip
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
    "output onto a folder": ("knn good.npy -o folder.npy/", USAGE, ["folder.npy"]),
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


def test_disk_full(vicinal, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a full disk is made with a tiny tmpfs, which takes root to mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a tiny tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
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
    finally:
        subprocess.run(["umount", disk], check=True)


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

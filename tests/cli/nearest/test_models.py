"""Models across the border of the command: one that it saved answers the same through C++, and one that C++ made is
read by it, for every preparation of classify, regress, lof and kmeans (models.cpp is the C++ side)."""

import csv
import os
import subprocess

import numpy as np
import pytest

PREPARED = [(categories, scale) for categories in ("none", "ordinal", "onehot") for scale in ("none", "standard", "minmax")]
KINDS = ["classify", "regress", "lof", "kmeans"]


@pytest.fixture
def models(tmp_path):
    program = os.environ["VICINAL_MODELS"]

    def run(*words, code=0):
        done = subprocess.run([program, *map(str, words)], cwd=tmp_path, text=True, capture_output=True, timeout=300)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def files(tmp_path):
    """train.csv and test.csv: columns of very different sizes, texts (some of them new in test.csv), labels, targets."""
    generator = np.random.default_rng(11)
    for name, rows, texts in (("train", 300, ["tcp", "udp", "icmp", "é"]), ("test", 90, ["udp", "12", "sctp", "tcp"])):
        lines = ["a,proto,b,still,class,y"]
        for _ in range(rows):
            kind = int(generator.integers(3))
            a, b, y = generator.normal(scale=1e4) + 3e4 * kind, generator.normal(scale=1e-3), generator.normal()
            lines.append(f"{float(a)!r},{texts[generator.integers(4)]},{float(b)!r},7,k{kind},{float(y)!r}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")


def answers(path, kind):
    """Of a file that the command wrote, as exact values."""
    if path.suffix == ".npy":
        return np.load(path).tolist()
    with open(path) as lines:
        rows = list(csv.DictReader(lines))
    if kind == "classify":
        return [row["label"] for row in rows]
    # The target's name is not known of a model that C++ made.
    return [float(row.get("y") or row["value"]) for row in rows] if kind == "regress" else [int(row["label"]) for row in rows]


def parsed(text, kind):
    lines = text.splitlines()
    return lines if kind == "classify" else [int(line) if kind == "kmeans" else float(line) for line in lines]


def by_command(ok, tmp_path, kind, model, left_out):
    output = tmp_path / ("answers.npy" if kind == "lof" else "answers.csv")
    rows = ["test.csv", "--model", model] if kind == "kmeans" else ["--model", model, "test.csv"]
    ok(kind, *rows, *(word for column in left_out for word in ("--drop", column)), "-o", output)
    return answers(output, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("categories,scale", PREPARED)
def test_a_saved_model_answers_the_same_in_cpp(ok, tmp_path, models, files, kind, categories, scale):
    texts = ["proto"] if categories == "none" else []
    options = {
        "classify": ["--label", "class", "--drop", "y", "-k", 4, "--weights", "distance"],
        "regress": ["--target", "y", "--drop", "class", "-k", 4],
        "lof": ["--drop", "class", "--drop", "y", "-k", 9],
        "kmeans": ["--drop", "class", "--drop", "y", "-c", 5, "--seed", 3],
    }[kind]
    options += [word for column in texts for word in ("--drop", column)]
    ok(kind, "train.csv", *options, "--categories", categories, "--scale", scale, "--save-model", "model")
    left_out = ["class", "y", *texts]
    expected = by_command(ok, tmp_path, kind, "model", left_out if kind in ("lof", "kmeans") else [])
    assert len(expected) == 90 and len(set(expected)) > 1
    assert parsed(models("answer", kind, "model", "test.csv", *left_out), kind) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts,scaling", [(t, s) for t in ("ordinal", "onehot") for s in ("none", "standard", "minmax")])
def test_a_model_made_in_cpp_is_read_by_the_command(ok, tmp_path, models, files, kind, texts, scaling):
    models("make", kind, "train.csv", "model", scaling, texts)
    expected = parsed(models("answer", kind, "model", "test.csv", "class", "y"), kind)
    assert by_command(ok, tmp_path, kind, "model", ["class", "y"]) == expected


def test_columns_of_another_kind_are_refused(ok, tmp_path, models, files):
    ok("lof", "train.csv", "--drop", "class", "--drop", "y", "--categories", "ordinal", "--save-model", "model")
    assert "column 'b' is dropped" in models("answer", "lof", "model", "test.csv", "class", "y", "b", code=3)
    lines = (tmp_path / "test.csv").read_text().replace("a,proto", "proto,a", 1)
    (tmp_path / "test.csv").write_text(lines)
    assert "column 'a' is '" in models("answer", "lof", "model", "test.csv", "class", "y", code=3)

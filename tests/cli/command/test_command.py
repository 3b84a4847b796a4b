"""The command as a whole: help and its examples, JSON, completion, config files, --explain, progress."""

import json
import os
import subprocess

import numpy as np
import pytest

SUBCOMMANDS = ["knn", "radius", "merge", "classify", "regress", "kmeans", "dbscan", "hdbscan", "optics", "spanning-tree", "lof", "lle", "match", "cocluster", "convert", "impute", "info", "doctor", "generate", "completion"]


@pytest.mark.parametrize("name", ["", *SUBCOMMANDS])
def test_help_and_its_examples(run_examples, small_files, name):
    run_examples(*name.split())


MISTYPED = {
    "kmens x": "there is no subcommand 'kmens'; did you mean kmeans?",
    "clas x": "there is no subcommand 'clas'; did you mean classify?",
    "zzz": "there is no subcommand 'zzz'; there are knn, radius, ",
    "kmeans --cluster 3 x.npy": "kmeans has no option --cluster; did you mean --clusters?",
    "knn x.npy --metrik=cosine": "knn has no option --metrik; did you mean --metric?",
    "classify a b --lable c": "classify has no option --lable; did you mean --label",
    "lle t.npy --target x": "lle has no option --target; regress has one",
    "generate blobs --variant ltsa": "generate has no option --variant; lle has one",
    "knn t.npy --frobnicate": "knn has no option --frobnicate (see",
    "doctor now": "'now' is one argument too many",
    "knn t.npy --" + "x" * 5000: "has no option --xxx",
}


@pytest.mark.parametrize("arguments", MISTYPED)
def test_what_was_meant(command, arguments):
    done = subprocess.run([command, *arguments.split()], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done
    assert MISTYPED[arguments] in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and "--help`" in done.stderr


HOSTILE = [
    "info {t}",
    "info {t} --json",
    "info {t} --explain",
    "knn {t}",
    "knn {t} -o {o}.npz",
    "radius {t} -r 1 -o {o}.csv",
    "classify {t} {t} --label {y} -o {o}.csv",
    "classify {t} {t} --label {y}",
    "classify {t} {t} --label {y} --json",
    "regress {t} {t} --target {x} --drop {y}",
    "kmeans {t} --drop {y} -c 2 -o {o}.csv --save-model {o}",
    "lof {t} --label {y} -k 3",
    "lof {t} --label {y} -k 3 --report {o}.html",
    "lle {t} --label {y} -k 4 -o {o}.csv --report {o}.html",
    "cocluster {t} -o {o}.csv",
    "convert {t} {o}.npy --drop {y}",
    "convert {t} {o}.nothing",
    "generate blobs -n 10 -o {o}.npy",
    "match {t} {t}",
    "knn {o}",
    "knn {t} --drop {o}",
    "knn {t} --{o}",
    "{o}",
]


@pytest.mark.parametrize("arguments", HOSTILE)
def test_nothing_of_the_users_drives_the_terminal(command, tmp_path, arguments):
    """Names of files, columns and labels with control characters of one byte, of UTF-8, and bytes that are no text."""
    control = b"\x1b]0;x\x07\x7f\xc2\x9b2J\xff\xc3\xa9"
    names = {"{t}": control + b".csv", "{y}": control + b"y", "{x}": control + b"x", "{o}": control + b"o"}
    rows = b"".join(b"%d,%d,%s%d\n" % (i, i * i % 7, control, i % 2) for i in range(20))
    (tmp_path / "t").write_bytes(names["{x}"] + b",z," + names["{y}"] + b"\n" + rows)
    (tmp_path / "t").rename(tmp_path / os.fsdecode(names["{t}"]))
    words = arguments.encode().split()
    for key, name in names.items():
        words = [word.replace(key.encode(), name) for word in words]
    done = subprocess.run([command, *words], cwd=tmp_path, capture_output=True, timeout=60)
    said = (done.stdout + done.stderr).decode()  # which is UTF-8
    driving = [c for c in said if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert not driving, said
    assert done.returncode == 5 or "é" in said, said
    if "--json" in arguments:
        json.loads(done.stdout)


def test_version(vicinal):
    done = vicinal("--version")
    assert done.returncode == 0 and done.stdout.startswith("vicinal 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        "knn train.npy",
        "knn train.npy test.npy -o graph.npz",
        "knn train.npy --explain",
        "radius train.npy -r 1",
        "radius train.npy test.npy -r 1 --count",
        "radius train.npy -r 1 --explain",
        "classify train.csv test.csv --label class",
        "classify train.csv test.csv --label class --explain",
        "lof train.npy",
        "lof train.npy test.npy -k 5 --explain",
        "cocluster edges.csv",
        "cocluster edges.csv --explain",
        "info train.npy",
        "info train.csv",
        "info train.npy --explain",
        "doctor",
        "doctor --explain",
        "generate moons -n 10",
        "generate blobs -n 10 --explain",
        "completion fish",
    ],
)
def test_json(vicinal, small_files, arguments):
    done = vicinal(*arguments.split(), "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_explain_does_not_run(vicinal, tmp_path):
    np.save(tmp_path / "large.npy", np.zeros((1, 1)))
    rows = 2_000_000  # brute force within itself: 4e12 pairs
    np.save(tmp_path / "large.npy", np.random.default_rng(0).random((rows, 2)).astype(np.float32))
    done = vicinal("knn", "large.npy", "-k", 5, "-o", "out.npz", "--explain", timeout=30)
    assert done.returncode == 0, done.stderr
    for word in ("method", "memory", "expected", "why", "threads"):
        assert word in done.stdout
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_option(ok, shell):
    script = ok("completion", shell)
    for name in SUBCOMMANDS:
        for line in ok(*name.split(), "--help").splitlines():
            words = line.split()
            if words and words[0].startswith("--"):
                option = words[0].split(",")[0].lstrip("-")
                assert option in script, f"{name} --{option}"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_parses(ok, shell):
    done = subprocess.run(["bash", "-n"], input=ok("completion", shell), text=True, capture_output=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize(
    "typed, expected",
    [
        (["vicinal", "cl"], "classify"),
        (["vicinal", "knn", "--met"], "--metric"),
        (["vicinal", "knn", "--metric", "cheb"], "chebyshev"),
        (["vicinal", "knn", "--screen", ""], "bfloat16"),
        (["vicinal", "generate", "sw"], "swiss-roll"),
    ],
)
def test_completion_in_bash(ok, tmp_path, typed, expected):
    script = ok("completion", "bash")
    words = " ".join(f"'{word}'" for word in typed)
    probe = f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _vicinal; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", probe], cwd=tmp_path, text=True, capture_output=True)
    assert expected in done.stdout.split(), done.stdout + done.stderr


def test_config_file(ok_json, vicinal, tmp_path, small_files):
    (tmp_path / "vicinal.toml").write_text('[knn]\nmetric = "manhattan"\nk = 3\n')
    found = ok_json("knn", "train.npy", "--config", "vicinal.toml")
    assert (found["metric"], found["k"]) == ("manhattan", 3)
    assert ok_json("knn", "train.npy", "--config", "vicinal.toml", "-k", 4)["k"] == 4
    (tmp_path / "wrong.toml").write_text("[knn]\nmetrik = 1\n")
    done = vicinal("knn", "train.npy", "--config", "wrong.toml")
    assert done.returncode == 2 and "metrik" in done.stderr


WRITING = [
    ("knn train.npy -o {}", ["a.npz"]), ("radius train.npy -r 1 -o {} --report {}", ["b.csv.gz", "b.html"]),
    ("radius train.npy -r 1 --count -o {}", ["c.npy"]),
    ("classify train.csv test.csv --label class -o {} --save-model {} --report {}", ["d.csv", "d.vnm", "d.html"]),
    ("regress train.csv --target x0 --drop class --save-model {}", ["e.vnm"]),
    ("kmeans train.npy -c 3 --save-model {last} -o f", ["f.cluster_centres", "f.membership", "f.vkm"]),
    ("kmeans train.npy --scan 2..3 --report {}", ["g.html"]),
    ("lof train.npy -o {} --save-model {} --report {}", ["h.npz", "h.vlof", "h.html"]),
    ("lle train.npy -o {} --save-model {} --report {}", ["i.csv", "i.vlle", "i.html"]),
    ("match old.geojson new.geojson -o {} --changes {} --report {}", ["j.csv", "j_changes.csv", "j.html"]),
    ("cocluster edges.csv -o {}", ["k.csv"]), ("convert train.npy {} --lossy", ["l.fvecs.gz"]),
    ("impute train.npy -o {}", ["m.csv"]), ("info train.npy --report {}", ["n.html"]),
    ("generate moons -n 9 -o {} --parameters {} --labels {}", ["o.npy", "p.csv", "q.txt"]),
]


def test_every_command_ends_by_naming_the_files_it_wrote(vicinal, tmp_path, small_files):
    """In one line, the last on stderr; as `files` with --json; not with --quiet. Control characters are shown."""
    for words, names in WRITING:
        names = [name.replace("l.", "l\x1b.") for name in names]
        files = iter(names)
        words = [next(files) if word == "{}" else word for word in words.replace("{last}", names[-1]).split()]
        done = vicinal(*words)
        if done.returncode == 5 and words[0] == "match":
            continue
        assert done.returncode == 0, (words, done.stderr)
        last = done.stderr.splitlines()[-1]
        assert last.startswith("written: ") and done.stderr.count("written") == 1, (words, done.stderr)
        assert sorted(last.removeprefix("written: ").replace("\\x1b", "\x1b").split(", ")) == sorted(names), words
        assert all((tmp_path / name).exists() for name in names), words
        said = vicinal(*words, "--json")
        assert sorted(json.loads(said.stdout)["files"]) == sorted(names), words
        assert "written" not in said.stderr, words
    assert vicinal("knn", "train.npy", "-o", "a.npz", "-q").stderr == ""
    assert "written" not in vicinal("knn", "train.npy", "-o", "-").stderr
    done = vicinal("lof", "train.npy", "-", "--save-model", "m", input="0,0,0,0\n")
    assert done.stderr.splitlines()[-1] == "written: m"
    assert json.loads(vicinal("knn", "train.npy", "-o", "-", "--json").stderr)["files"] == []


def test_progress_only_when_asked(vicinal, small_files):
    assert "\x1b" not in vicinal("knn", "train.npy").stderr
    assert "\x1b[2K" in vicinal("knn", "train.npy", "--progress", "always").stderr
    assert vicinal("knn", "train.npy", "--quiet").stderr == ""


def test_thread_counts_and_instruction_sets_agree(ok, ok_json, tmp_path, small_files):
    doctor = ok_json("doctor")
    assert doctor["self_test"] and doctor["isa"] in doctor["isas"]
    answers = set()
    for isa in doctor["isas"]:
        for threads in (1, 2, 3):
            ok("knn", "train.npy", "test.npy", "--isa", isa, "--threads", threads, "-o", "graph.csv")
            answers.add((tmp_path / "graph.csv").read_text())
    assert len(answers) == 1

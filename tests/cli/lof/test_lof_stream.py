"""`vicinal lof --model MODEL -`: rows from standard input, a line in and a line out, whatever comes."""

import json
import signal
import subprocess
import threading

import numpy as np
import pytest
from conftest import write_csv


@pytest.fixture
def model(ok, tmp_path):
    generator = np.random.default_rng(2)
    table = generator.normal(size=(500, 3))
    write_csv(tmp_path / "train.csv", table)
    ok("lof", "train.csv", "-k", 10, "--save-model", "model.vlof", "--top", 0)
    return tmp_path / "model.vlof"


def lines_of(table):
    return [",".join(repr(float(value)) for value in row) for row in table]


def answers_of(text):
    head, *lines = text.splitlines()
    assert head == "row,lof,outlier"
    return [(int(row), float(score), int(outlier)) for row, score, outlier in (line.split(",") for line in lines)]


def test_the_answers_are_those_of_a_file(ok, vicinal, tmp_path, model):
    asked = np.random.default_rng(3).normal(size=(10000, 3)) * 1.5
    write_csv(tmp_path / "asked.csv", asked)
    ok("lof", "--model", model, "asked.csv", "-o", "scores.npy")
    wanted = np.load(tmp_path / "scores.npy")
    for text in ("\n".join(lines_of(asked)) + "\n", (tmp_path / "asked.csv").read_text(), "\r\n".join(lines_of(asked))):
        done = vicinal("lof", "--model", model, "-", input=text)
        assert done.returncode == 0, done.stderr
        answers = answers_of(done.stdout)
        assert [row for row, _, _ in answers] == list(range(10000))
        assert (np.array([score for _, score, _ in answers]) == wanted).all()
        assert [outlier for _, _, outlier in answers] == (wanted > 1.5).astype(int).tolist()
        assert "10 000 rows scored" in done.stderr and "0 lines refused" in done.stderr


HOSTILE = [
    "x,1,2",
    "1,2",
    "1,2,3,4",
    "1,2,nan",
    "1,2,inf",
    "1,,2",
    "1,2,1e400",
    "1,2,1e308",
    '"1,2,3',
    '1,2,3"',
    'a"b,1,2',
    "\x00,1,2",
    "\x1b[31m,1,2",
    "é,1,2",
    "," * 5000,
    "1;2;3",
    "9" * 400 + ",1,2",
    "\ufeff1,2,3",
]


def test_hostile_lines_are_told_by_their_number(vicinal, model):
    good = lines_of(np.random.default_rng(4).normal(size=(2000, 3)))
    lines, wanted, refused = [], [], []
    for i, line in enumerate(good):
        if i % 7 == 3:
            refused.append(len(lines) + 1)
            lines.append(HOSTILE[i // 7 % len(HOSTILE)])
        wanted.append(len(lines))
        lines.append(line)
    alone = answers_of(vicinal("lof", "--model", model, "-", input="\n".join(good)).stdout)
    done = vicinal("lof", "--model", model, "-", input="\n".join(lines) + "\n")
    assert done.returncode == 0
    answers = answers_of(done.stdout)
    assert [row for row, _, _ in answers] == wanted
    assert [answer[1:] for answer in answers] == [answer[1:] for answer in alone]
    told = done.stderr.splitlines()
    # Each batch tells its own in order; what is told of a line does not depend on its neighbors.
    assert sorted(int(line.split(":")[1].split()[1].rstrip(",")) for line in told[:-1]) == refused
    assert told[-1].startswith("2 000 rows scored") and f"{len(refused)} lines refused" in told[-1]
    assert "\x1b" not in done.stderr and "\x00" not in done.stderr


def test_blank_lines_comments_and_headers_are_no_rows(vicinal, model):
    text = "\ufeff# made by hand\n\n  \nx0,x1,x2\n1,2,3\n\n# a pause\n\t\n3,2,1"
    done = vicinal("lof", "--model", model, "-", input=text)
    assert [row for row, _, _ in answers_of(done.stdout)] == [0, 1] and "0 lines refused" in done.stderr
    swapped = vicinal("lof", "--model", model, "-", input="x1,x0,x2\n2,1,3\n")
    assert answers_of(swapped.stdout)[0][1] == answers_of(done.stdout)[0][1]
    dropped = vicinal("lof", "--model", model, "-", "--drop", "time", input="x0,time,x1,x2\n1,noon,2,3\n")
    assert answers_of(dropped.stdout)[0][1] == answers_of(done.stdout)[0][1]
    by_position = vicinal("lof", "--model", model, "-", "--drop", "1", input="1,noon,2,3\n")
    assert by_position.stdout == dropped.stdout
    unnamed = vicinal("lof", "--model", model, "-", "--drop", "time", input="1,noon,2,3\n")
    assert unnamed.returncode == 2 and "'time'" in unnamed.stderr
    tabs = vicinal("lof", "--model", model, "-", "--delimiter", "tab", input="1\t2\t3\n")
    assert answers_of(tabs.stdout)[0][1] == answers_of(done.stdout)[0][1]
    nothing = vicinal("lof", "--model", model, "-", input="")
    assert nothing.returncode == 0 and nothing.stdout == "row,lof,outlier\n" and "0 rows scored" in nothing.stderr


def test_no_line_is_too_long(vicinal, model):
    long = "1," * (3 << 20)
    done = vicinal("lof", "--model", model, "-", input=f"1,2,3\n{long}\n3,2,1\n{long}")
    assert [row for row, _, _ in answers_of(done.stdout)] == [0, 2]
    assert "line 2: is longer than" in done.stderr and "line 4: is longer than" in done.stderr
    assert "2 lines refused" in done.stderr


def test_json_lines(vicinal, model):
    text = "\ufeff# made by hand\n\nx0,x1,x2\n1,2,3\nx,1,2\n\n" + "1," * (1 << 20) + "\n9,9,9\n1,2,inf\n3,2,1"
    plain = vicinal("lof", "--model", model, "-", input=text)
    done = vicinal("lof", "--model", model, "-", "--json", input=text)
    assert done.returncode == 0
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["row"], one["line"]) for one in told] == [(0, 4), (1, 5), (2, 7), (3, 8), (4, 9), (5, 10)]
    refused = [one for one in told if "error" in one]
    assert [one["line"] for one in refused] == [5, 7, 9] and "is longer than" in refused[1]["error"]
    assert [one.keys() for one in told if one not in refused] == [{"row", "line", "lof", "outlier"}] * 3
    answers = [(one["row"], one["lof"], int(one["outlier"])) for one in told if one not in refused]
    assert answers == answers_of(plain.stdout) and told[3]["outlier"] is True
    assert done.stderr.splitlines()[0].startswith("vicinal: line 5: ")


def test_without_a_model_file(vicinal, model):
    by_file = vicinal("lof", "--model", model, "-", input="1,2,3\n9,9,9\n")
    at_once = vicinal("lof", "train.csv", "-", "-k", 10, input="1,2,3\n9,9,9\n")
    assert at_once.returncode == 0 and at_once.stdout == by_file.stdout
    assert answers_of(by_file.stdout)[1][2] == 1


def start(command, folder, **options):
    return subprocess.Popen(
        [command, "lof", "--model", "model.vlof", "-"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def test_a_line_is_answered_before_the_next_one_comes(command, tmp_path, model):
    running = start(command, tmp_path, text=True, bufsize=1)
    guard = threading.Timer(60, running.kill)  # if no answer came, reading would wait for ever
    guard.start()
    assert running.stdout.readline() == "row,lof,outlier\n"
    for i in range(20):
        running.stdin.write(f"{i},2,3\n")
        running.stdin.flush()
        assert running.stdout.readline().startswith(f"{i},")
    running.stdin.close()
    assert running.wait(60) == 0
    guard.cancel()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupt(command, tmp_path, model, sent):
    running = start(command, tmp_path)
    assert running.stdout.readline() == b"row,lof,outlier\n"
    running.stdin.write(b"1,2,3\n")
    running.stdin.flush()
    assert running.stdout.readline().startswith(b"0,")
    running.send_signal(sent)
    assert running.wait(60) == 130
    assert running.stderr.read().count(b"\n") == 1


def test_memory_is_bounded(command, tmp_path, model):
    """Forty times as many lines take no more memory, but for what an allocator keeps."""
    lines = ("\n".join(lines_of(np.random.default_rng(5).normal(size=(1000, 3)).round(3))) + "\n").encode()
    peaks = []
    for thousands in (20, 800):
        with open(tmp_path / "answers.csv", "wb+") as answers:
            running = subprocess.Popen(
                [command, "lof", "--model", "model.vlof", "-", "-q"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=answers
            )
            for _ in range(thousands):
                running.stdin.write(lines)
            running.stdin.flush()
            status = open(f"/proc/{running.pid}/status").read()  # all but the last lines have been taken by now
            peaks.append(int(status.split("VmHWM:")[1].split()[0]))
            running.stdin.close()
            assert running.wait(120) == 0
        assert (tmp_path / "answers.csv").read_bytes().count(b"\n") == 1000 * thousands + 1
    assert peaks[1] - peaks[0] < 8_000  # kB; the lines alone are 15 MB more


def test_whoever_reads_may_leave(command, tmp_path, model):
    (tmp_path / "many.csv").write_text("1,2,3\n" * 300_000)
    done = subprocess.run(
        f"'{command}' lof --model model.vlof - < many.csv | head -2", shell=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.startswith("row,lof,outlier\n0,") and done.stderr == ""


def test_standard_output_is_full(command, tmp_path, model):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [command, "lof", "--model", "model.vlof", "-"], cwd=tmp_path, input="1,2,3\n", stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3 and "standard output" in done.stderr

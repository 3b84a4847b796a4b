"""Standard streams that are closed or full, and pipes that nobody writes to."""

import json
import os
import signal
import subprocess
import time

import pytest


def shell(script, command, folder):
    return subprocess.run(["sh", "-c", script.replace("vicinal", command)], cwd=folder, capture_output=True, timeout=60)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n5,6\n")
    return tmp_path


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "0<&- 2>&-", "0<&- 1>&- 2>&-"])
def test_words_for_a_person_stay_out_of_files(command, table, streams):
    plain = shell("vicinal convert t.csv plain.csv --quiet", command, table)
    assert plain.returncode == 0, plain.stderr
    told = shell(f"vicinal convert t.csv o.csv --progress always {streams}", command, table)
    assert told.returncode == 0
    assert (table / "o.csv").read_bytes() == (table / "plain.csv").read_bytes()


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
def test_errors_keep_their_codes_and_json(command, table, stream):
    (table / "bad.csv").write_text("1,2\n3,x\n")
    for arguments, code in (("info missing.csv", 3), ("knn bad.csv -k 1", 3), ("knn t.csv -k 9", 2), ("knn t.csv -k", 2)):
        result = shell(f"vicinal {arguments} --json {stream}", command, table)
        assert result.returncode == code, arguments
        assert "message" in json.loads(result.stdout)["error"], arguments


def test_a_closed_stdout_is_still_an_error(command, table):
    assert shell("vicinal knn t.csv -k 1 1>&-", command, table).returncode == 3


def stopped_by(process, sent):
    begin = time.monotonic()
    process.send_signal(sent)
    process.communicate(timeout=30)
    return time.monotonic() - begin


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_the_first_signal_ends_the_wait_for_a_writer(command, table, sent):
    os.mkfifo(table / "nobody")
    waiting = subprocess.Popen([command, "convert", "nobody", "o.npy"], cwd=table, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    time.sleep(0.5)
    assert waiting.poll() is None
    stopped_by(waiting, sent)
    assert waiting.returncode == 130
    assert sorted(os.listdir(table)) == ["nobody", "t.csv"]


@pytest.mark.parametrize("words", ["convert t.csv", "knn t.csv -k 1 -o", "generate blobs -n 1000 -o"])
def test_the_first_signal_ends_the_wait_for_a_reader(command, table, words):
    for name in ("nobody.npz", "nobody.csv"):
        os.mkfifo(table / name)
        waiting = subprocess.Popen([command, *words.split(), name], cwd=table, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        time.sleep(0.5)
        assert waiting.poll() is None
        stopped_by(waiting, signal.SIGINT)
        assert waiting.returncode == 130
    assert sorted(os.listdir(table)) == ["nobody.csv", "nobody.npz", "t.csv"]


@pytest.mark.parametrize("words", ["convert b.npy slow.csv", "convert b.npy /dev/stdout --to-format csv",
                                   "generate blobs -n 100000"])
def test_the_first_signal_ends_the_wait_for_a_reader_that_stopped_reading(command, table, words):
    made = subprocess.run([command, "generate", "blobs", "-n", "100000", "-o", "b.npy"], cwd=table, timeout=60)
    assert made.returncode == 0
    os.mkfifo(table / "slow.csv")
    reader = os.open(table / "slow.csv", os.O_RDONLY | os.O_NONBLOCK)
    waiting = subprocess.Popen([command, *words.split()], cwd=table, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.7)
    assert waiting.poll() is None
    waiting.send_signal(signal.SIGINT)
    waiting.wait(timeout=30)
    assert waiting.returncode == 130
    os.close(reader)
    waiting.communicate()


def test_a_pipe_is_written_like_a_file(command, table):
    os.mkfifo(table / "pipe.csv")
    reader = subprocess.Popen(["sh", "-c", "sleep 0.2; cat pipe.csv > copy.csv"], cwd=table)
    for output in ("pipe.csv", "plain.csv"):
        result = subprocess.run([command, "generate", "blobs", "-n", "20000", "-o", output], cwd=table,
                                capture_output=True, timeout=60)
        assert result.returncode == 0, result.stderr
    reader.wait(timeout=30)
    assert (table / "copy.csv").read_bytes() == (table / "plain.csv").read_bytes()


def test_a_signal_that_was_ignored_before_stays_ignored(command, table):
    os.mkfifo(table / "nobody")
    waiting = subprocess.Popen(["sh", "-c", f"trap '' HUP; exec {command} convert nobody o.npy"], cwd=table,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.5)
    waiting.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert waiting.poll() is None
    stopped_by(waiting, signal.SIGTERM)
    assert waiting.returncode == 130


def test_a_pipe_is_read_like_a_file(command, table):
    os.mkfifo(table / "pipe")
    writer = subprocess.Popen(["sh", "-c", "sleep 0.2; cat t.csv > pipe"], cwd=table)
    result = subprocess.run([command, "convert", "pipe", "o.csv"], cwd=table, capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert (table / "o.csv").read_text() == (table / "t.csv").read_text()
    writer.wait(timeout=30)


def test_a_second_table_that_is_a_pipe_is_matched_by_name_and_read(command, table):
    (table / "rows.csv").write_text("a,b,kind\n1,2,x\n3,5,y\n")
    (table / "asked.csv").write_text("b,a\n5,3\n")
    os.mkfifo(table / "pipe")
    for words in ("knn rows.csv pipe --drop kind -k 1 -o - -q", "classify rows.csv pipe --label kind -k 1 -o - -q"):
        writer = subprocess.Popen(["sh", "-c", "cat asked.csv > pipe"], cwd=table)
        from_pipe = subprocess.run([command, *words.split()], cwd=table, capture_output=True, timeout=60, text=True)
        assert from_pipe.returncode == 0, from_pipe.stderr
        writer.wait(timeout=30)
        words = words.replace("pipe", "asked.csv").split()
        from_file = subprocess.run([command, *words], cwd=table, capture_output=True, timeout=60, text=True)
        assert from_pipe.stdout == from_file.stdout != ""


def test_info_reads_twice_and_refuses_a_pipe(command, table):
    os.mkfifo(table / "pipe")
    result = subprocess.run([command, "info", "pipe"], cwd=table, capture_output=True, timeout=60, text=True)
    assert result.returncode == 2
    assert "can be read only once" in result.stderr

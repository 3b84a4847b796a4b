"""vicinal-bench devices on fake devices: the same bits from each number of them, and what the result says."""

import json
import os
import pathlib
import subprocess

import pytest

from conftest import command_path


def run(*arguments, env=None):
    return subprocess.run([command_path(), "devices", "--scale", "0.00001", "--repeat", "1", "--warmup", "0", *arguments],
                          capture_output=True, text=True, timeout=120, env=env)


@pytest.fixture
def fake():
    folder = pathlib.Path("fake_device").resolve()
    plugin = folder / "libvicinal_fake_device.so"
    if not plugin.exists():
        pytest.skip("there is no fake device in this build")
    return {**os.environ, "VICINAL_CUDA_PLUGIN": str(plugin), "LD_LIBRARY_PATH": str(folder)}


def test_each_number_of_devices_gives_the_same_bits(tmp_path, fake):
    result = run("--devices", "1,2,3", "-o", str(tmp_path / "devices.json"), env=fake)
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "devices.json").read_text())
    assert {"machine", "date", "commit"} <= found.keys() and found["different_answers"] == 0
    assert [(line["job"], line["devices"]) for line in found["lines"]] == [
        (job, count) for job in ("kmeans", "knn-queries", "knn-within", "lof") for count in (1, 2, 3)]
    for line in found["lines"]:
        assert line["same_bits"] and line["efficiency"] > 0 and 0 <= line["transfer_share"] <= 1
        assert line["device"] == "cuda:" + ",".join(map(str, range(line["devices"])))
        assert min(line["seconds_of_last"].values()) >= -1e-9
        phases = line["phases_of_last"]
        assert bool(phases) == (line["devices"] > 1), "one device has no phases"
        for phase in phases.values():
            assert phase["runs"] > 0 and phase["host"] >= 0 and 1 <= len(phase["devices"]) <= line["devices"]


def test_what_is_refused(fake):
    result = run("--devices", "9", env=fake)
    assert result.returncode == 5 and "there are not so many" in result.stderr
    result = run("--devices", "1,x", env=fake)
    assert result.returncode == 2 and "'x'" in result.stderr

"""vicinal bench match on made buildings: the join alone, and on a device, where there is none by a fake one."""

import json
import os
import pathlib
import subprocess

import pytest

from conftest import command_path


def run(*arguments, env=None):
    command = [command_path(), "bench", "match", "--buildings", "300", "--repeat", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


def test_the_join_alone():
    result = run("--overlaps-only", "--device", "cpu", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["device"] == "cpu"
    assert found["candidates"] >= found["meeting"] == 300
    assert "match_seconds" not in found and "overlap_device_seconds" not in found


def test_judges_no_truth_without_a_match(tmp_path):
    for name in ("old.geojson", "new.geojson"):
        (tmp_path / name).write_text("{}")
    result = run("--overlaps-only", "--same-id", str(tmp_path / "old.geojson"), str(tmp_path / "new.geojson"))
    assert result.returncode == 2
    assert "--overlaps-only" in result.stderr


def test_a_device_joins_the_same_pairs():
    folder = pathlib.Path("fake_device").resolve()
    plugin = folder / "libvicinal_fake_device.so"
    if not plugin.exists():
        pytest.skip("the fake device is built by the contract tests")
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder), "VICINAL_CUDA_PLUGIN": str(plugin)}
    result = run("--device", "cuda", "--json", env=env)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    alone = json.loads(run("--device", "cpu", "--json").stdout)
    assert found["device"] == "cuda:0"
    assert 0 < found["candidates_left_to_host"] < found["candidates"]
    assert len(found["overlap_device_seconds"]) == 1
    for same in ("candidates", "meeting", "kept", "groups"):
        assert found[same] == alone[same]


def test_a_device_that_is_not_there_is_an_error(tmp_path):
    env = {**os.environ, "VICINAL_CUDA_PLUGIN": str(tmp_path / "none.so")}
    result = run("--device", "cuda", env=env)
    assert result.returncode == 5
    assert "CUDA" in result.stderr or "NVIDIA" in result.stderr

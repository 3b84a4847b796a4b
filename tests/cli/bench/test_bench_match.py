"""vicinal-bench match on made buildings: the join alone, and on a device, where there is none by a fake one."""

import json
import os
import pathlib
import subprocess

import pytest

from conftest import command_path
from maps import layer, polygons


def call(*arguments, env=None):
    return subprocess.run([command_path(), *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env)


def run(*arguments, env=None):
    return call("match", "--buildings", "300", "--repeat", "1", *arguments, env=env)


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


def test_bench_holds_pairs_against_truth(tmp_path):
    old = layer(tmp_path / "old.geojson", polygons((0, 0), (2, 0), (4, 0)), ["a", "b", "c"])
    new = layer(tmp_path / "new.geojson", polygons((0, 0), (2, 0), (8, 0)), ["x", "y", "z"])
    truth = tmp_path / "truth.csv"
    # Found; of weight 0; not found; of a feature that no map has. What is kept besides (b, y) is wrong.
    truth.write_text("new,old,land\nx,a,5\ny,b,0\nz,c,1\nx,elsewhere,3\n")
    said = call("match", old, new, "--id", "name", "--truth", truth, "--truth-old", "old", "--truth-new", "new",
                "--truth-weight", "land", "--truth-above", "0", "--repeat", "1", "--json")
    if said.returncode == 5 and ("libvicinal_geo.so" in said.stderr or "GDAL" in said.stderr):
        pytest.skip(said.stderr.strip())
    assert said.returncode == 0, said.stderr
    truth_said = json.loads(said.stdout)["truth"]
    assert truth_said["true_pairs"] == 2 and truth_said["true_pairs_elsewhere"] == 1 and truth_said["kept_pairs"] == 2
    assert truth_said["precision"] == truth_said["recall"] == truth_said["f1"] == 0.5
    assert abs(truth_said["recall_with_elsewhere"] - 1 / 3) < 1e-15
    lost = call("match", old, new, "--truth", truth, "--truth-old", "nobody")
    assert lost.returncode == 2 and "nobody" in lost.stderr
    # Pairs of the same name; without one there is nothing to hold against it.
    again = layer(tmp_path / "again.geojson", polygons((0, 0), (2, 0), (4, 0)), ["a", "b", ""])
    said = call("match", old, again, "--id", "name", "--same-id", "--repeat", "1", "--json")
    truth_said = json.loads(said.stdout)["truth"]
    assert truth_said["f1"] == 1 and truth_said["kept_pairs_without_a_name"] == 1

"""`vicinal-bench growth`: all sweeps of all systems, fits that NumPy repeats, answers that are spoiled, and limits."""
# ctest: COST 60

import html
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report_page import FRAMES, check_one_file, measure  # noqa: E402

SMALL = ("--device", "cpu", "--quiet", "--repeat", 1)
SYSTEMS = ["knn-fused", "knn-kdtree", "radius", "lof", "lle", "lle-modified", "lle-hessian", "lle-ltsa", "kmeans",
           "kmeans-seeds", "kmeans-parallel-seeds", "cocluster", "match", "spanning-tree", "hdbscan", "dbscan",
           "optics"]
# The 97.5 % quantile of Student's t, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
USAGE = 2
IO = 3


def test_the_list_names_sizes_over_three_decades(ok, ok_json):
    listed = ok_json("growth", "--list")["systems"]
    assert list(listed) == SYSTEMS
    for name, system in listed.items():
        assert system["title"] and "n" in system["sweeps"]
        for axis, sweep in system["sweeps"].items():
            sizes = sweep["sizes"]
            assert sizes == sorted(set(sizes)) and len(sizes) >= 6
            assert sizes[-1] >= 1000 * sizes[0] or (name, axis) == ("lle", "k"), (name, axis)
    text = ok("growth", "--list", "lof")
    assert "n (rows) from 1,000 to 1,000,000; d = 3, k = 20" in text and "kmeans" not in text


def fit_of(sizes, values):
    """(exponent, standard error, half of the 95 % interval), by NumPy."""
    x, y = np.log(np.array(sizes, float)), np.log(np.array(values, float))
    design = np.stack([x, np.ones_like(x)], axis=1)
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    freedom = len(x) - 2
    variance = ((y - design @ solution) ** 2).sum() / freedom
    error = np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])
    return solution[0], error, error * STUDENT[freedom]


def check_fit(fit, sizes, values):
    exponent, error, margin = fit_of(sizes, values)
    # Exponents are at most some tens; sums of at most eleven logarithms lose few bits.
    assert abs(fit["exponent"] - exponent) <= 1e-9 and abs(fit["error"] - error) <= 1e-7
    assert abs(fit["margin"] - margin) <= 1e-6
    assert abs(fit["high"] - fit["low"] - 2 * margin) <= 1e-5


def bends_of(sweep):
    """(from, to) of the bends, by the rule in bench/command/growth_fit.hpp."""
    points, fit = sweep["points"], sweep["time"]
    sides = []
    for one, other in zip(points, points[1:]):
        ratio = np.log(other["size"] / one["size"])
        step = np.log(other["least_seconds"] / one["least_seconds"]) / ratio
        noise = sum(np.log(point["median_seconds"] / point["least_seconds"]) for point in (one, other)) / ratio
        away = step - fit["exponent"]
        sides.append(np.sign(away) if abs(away) > max(fit["margin"], noise, 0.1) else 0)
    found = []
    for i, side in enumerate(sides):
        if side and i and sides[i - 1] == side:
            found[-1] = (found[-1][0], points[i + 1]["size"])
        elif side:
            found.append((points[i]["size"], points[i + 1]["size"]))
    return found


def check_sweep(sweep, letter):
    points = sweep["points"]
    sizes = [point["size"] for point in points]
    for point in points:
        assert point["least_seconds"] == min(point["seconds"]) > 0 and point["how"]
        assert abs(point["median_seconds"] - np.median(point["seconds"])) <= 1e-12
        assert point["peak_bytes"] is None or point["peak_bytes"] >= 0
        assert all(count >= 0 for count in point["counters"].values())
    check_fit(sweep["time"], sizes, [point["least_seconds"] for point in points])
    for name, fit in sweep["counters"].items():
        counts = [point["counters"].get(name, 0) for point in points]
        assert (fit is None) == (min(counts) == 0), name
        if fit:
            check_fit(fit, sizes, counts)
    assert [(bend["from"], bend["to"]) for bend in sweep["bends"]] == bends_of(sweep)
    for bend in sweep["bends"]:
        assert bend["reason"].startswith(f"From {letter} = ") and bend["reason"].endswith(".")
    assert sweep["sentence"].startswith(f"time grows as {letter}^a (a = {sweep['time']['exponent']:.2f} ± ")


@pytest.fixture(scope="module")
def quick(tmp_path_factory, command):
    folder = tmp_path_factory.mktemp("growth")
    done = subprocess.run([command, "growth", "--quick", "--json", "--commit", "0123456", *map(str, SMALL)], cwd=folder,
                          text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_all_systems_are_measured_and_right(quick):
    folder, found = quick
    assert json.loads((folder / "growth.json").read_text()) == found
    assert found["command"] == "bench growth" and found["quick"] and found["commit"] == "0123456"
    assert found["machine"]["cpu"] and found["date"] and found["threads"] >= 1
    assert list(found["systems"]) == SYSTEMS and found["wrong_answers"] == 0
    for system in found["systems"].values():
        assert system["checked_answers"] > 0 and system["wrong_answers"] == 0
        for letter, sweep in system["sweeps"].items():
            assert len(sweep["points"]) == 3 and sweep["stopped"] is None
            check_sweep(sweep, letter)


def test_counters_are_those_of_the_searches(quick):
    systems = quick[1]["systems"]
    ranked = "pairs ranked"
    for name in ("knn-fused", "knn-kdtree", "radius", "lof", "lle", "spanning-tree", "hdbscan", "optics"):
        for sweep in systems[name]["sweeps"].values():
            assert all(ranked in point["counters"] for point in sweep["points"]), name
    # A search within n rows ranks at most all pairs, and at least k for each query.
    for point in systems["lof"]["sweeps"]["n"]["points"]:
        assert 20 * point["size"] <= point["counters"][ranked] <= point["size"] ** 2
    for point in systems["knn-kdtree"]["sweeps"]["m"]["points"]:
        assert point["how"] == "kdtree" and 10 * point["size"] <= point["counters"][ranked] <= 100_000 * point["size"]
    assert all(point["counters"]["edges"] == 2 * point["size"]
               for point in systems["cocluster"]["sweeps"]["n"]["points"])


def test_the_page_has_every_sweep(quick):
    folder, found = quick
    page = folder / "growth.html"
    check_one_file(page)
    text = html.unescape(page.read_text())
    for name, system in found["systems"].items():
        assert f"<h2>{name}</h2>" in text
        for sweep in system["sweeps"].values():
            assert text.count(sweep["sentence"]) >= 2
            assert all(bend["reason"] in text for bend in sweep["bends"])
    assert "0123456" in text
    measured = measure({"growth": page}, folder)["growth"]
    assert {key: one["faults"] for key, one in measured.items()} == {key: [] for key in FRAMES}


def test_a_wrong_answer_of_any_system_is_found(vicinal, tmp_path):
    done = vicinal("growth", "--spoil", "--json", *SMALL)
    assert done.returncode != 0 and "are wrong" in done.stderr
    found = json.loads((tmp_path / "growth.json").read_text())
    assert list(found["systems"]) == SYSTEMS
    assert [name for name, system in found["systems"].items() if system["wrong_answers"] == 0] == []
    # The sweeps are measured once, by the other tests.
    assert all(system["sweeps"] == {} for system in found["systems"].values())


def test_a_sweep_ends_before_the_limit_and_says_so(ok_json):
    sweep = ok_json("growth", "lle-hessian", "--time-limit", 1, *SMALL)["systems"]["lle-hessian"]["sweeps"]["n"]
    assert sweep["stopped"].startswith("Sizes from n = ") and 3 <= len(sweep["points"]) < 7
    check_sweep(sweep, "n")


def test_each_line_is_a_sentence(ok):
    printed = ok("growth", "cocluster", "--quick", "--device", "cpu").splitlines()
    assert printed[0].startswith("cocluster") and "time grows as n^a (a = " in printed[0]
    assert any("time grows as k^a" in line for line in printed)


@pytest.mark.parametrize("arguments, said", [
    (("knn",), "'knn' is none of knn-fused"),
    (("--repeat", 0), "--repeat"),
    (("--time-limit", 0), "--time-limit"),
    (("-o", "growth.txt"), "-o"),
    (("--html", "growth.json"), "--html"),
    (("--threads", -1), "threads = -1"),
])
def test_bad_input_is_refused_before_work(vicinal, tmp_path, arguments, said):
    done = vicinal("growth", *arguments, "--quick")
    assert done.returncode == USAGE and said in done.stderr and done.stdout == "", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named_before_work(vicinal):
    done = vicinal("growth", "--html", "no-folder/growth.html")
    assert done.returncode == IO and "there is no folder 'no-folder'" in done.stderr and done.stdout == ""


def test_help(run_examples):
    run_examples("growth")

"""The pages that the commands write with --report: each made once, and all looked at by one start of Chromium."""
# ctest: COST 40

import pathlib
import re
import subprocess
import time

import numpy as np
import pytest
import report_page
from conftest import FASHION, command_path, read_idx
from maps import layer, polygons
from report_page import FRAMES, check_one_file, measure

# Texts that would break a page that does not escape, and long ones that would break its layout.
TEXTS = [
    "<script>alert(1)</script>", "a \"quoted\" & 'odd' one", "an-extraordinarily-long-name-without-an-end", "é",
]  # fmt: skip


def run(folder, *arguments):
    words = [command_path(), *map(str, arguments)]
    done = subprocess.run(words, cwd=folder, text=True, capture_output=True, timeout=120)
    if done.returncode == 5 and "libvicinal_geo.so" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def write_table(path, names, rows):
    lines = [",".join(map(quoted, names))]
    lines += [",".join(value if isinstance(value, str) else repr(value) for value in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def images(folder):
    if not FASHION.is_dir():
        pytest.skip(f"{FASHION} is not there (Debian package dataset-fashion-mnist)")
    for name, file, rows in [("train", "train-images-idx3", 2000), ("train_labels", "train-labels-idx1", 2000),
                             ("test", "t10k-images-idx3", 300), ("test_labels", "t10k-labels-idx1", 300)]:  # fmt: skip
        np.save(folder / f"{name}.npy", read_idx(FASHION / f"{file}-ubyte.gz")[:rows].reshape(rows, -1).squeeze())
    run(folder, "classify", "train.npy", "test.npy", "--labels", "train_labels.npy", "--test-labels", "test_labels.npy",
        "--image-shape", "28x28", "--report", "report.html")  # fmt: skip


def texts(folder):
    generator = np.random.default_rng(2)
    for name, rows in (("train", 200), ("test", 90)):
        codes = generator.integers(0, 4, rows)
        np.save(folder / f"<b>{name}&.npy", generator.normal(size=(rows, 3)) + codes[:, None])
        (folder / f"{name}.txt").write_text("".join(TEXTS[code] + "\n" for code in codes))
    run(folder, "classify", "<b>train&.npy", "<b>test&.npy", "--labels", "train.txt", "--test-labels", "test.txt",
        "-k", 12, "--weights", "distance", "--report", "report.html")  # fmt: skip


def neighbors(folder):
    """Pictures, and equal rows: pairs at distance 0."""
    rows = np.random.default_rng(3).integers(0, 256, (1500, 5, 4), dtype=np.uint8)
    rows[7] = rows[3]
    np.save(folder / "<b>rows&.npy", rows)
    run(folder, "knn", "<b>rows&.npy", "-k", 6, "--image-shape", "5x4", "--report", "report.html")


def radius(folder):
    """Some rows have no neighbors, and one has most of them."""
    generator = np.random.default_rng(3)
    np.save(folder / "table.npy", generator.normal(size=(300, 2)))
    np.save(folder / "queries.npy", generator.normal(size=(90, 2)) * 3)
    run(folder, "radius", "table.npy", "queries.npy", "-r", 0.7, "--report", "report.html")


def contents(folder):
    """Values that are not finite: none is lost."""
    table = np.random.default_rng(13).normal(size=(90, 6)) * [1, 1e9, 1e-9, 0, 1, 1]
    table[3, 4], table[5, 5] = np.nan, np.inf
    np.save(folder / "<i>rows&.npy", table)
    run(folder, "info", "<i>rows&.npy", "--image-shape", "2x3", "--report", "report.html")


def regression(folder):
    """Values of very different size, and rows without an answer."""
    generator = np.random.default_rng(12)
    names = ["x", TEXTS[0], TEXTS[2], "y"]
    for name, rows in (("train", 1200), ("test", 60)):
        write_table(folder / f"{name}.csv", names, (generator.normal(size=(rows, 4)) * [1, 1e9, 1e-9, 1]).tolist())
    run(folder, "regress", "train.csv", "test.csv", "--target", names[2], "--target", names[1], "-r", 0.05,
        "--outlier", 0, "--report", "report.html")  # fmt: skip


def clusters(folder):
    generator = np.random.default_rng(4)
    rows = np.concatenate([generator.normal(size=(60, 7)) + 5 * i for i in range(4)])
    write_table(folder / "<b>rows&.csv", [*TEXTS, "it's", "f", "g"], rows.tolist())
    run(folder, "kmeans", "<b>rows&.csv", "--scan", "1..9", "--report", "report.html")


def many_clusters(folder):
    """More clusters than numbers have room, more rows than the sample, and columns of very different size."""
    np.save(folder / "many.npy", np.random.default_rng(5).normal(size=(3000, 30)) * np.logspace(-3, 9, 30))
    run(folder, "kmeans", "many.npy", "-c", 60, "--max-iterations", 100, "--report", "report.html")


def dense_clusters(folder):
    generator = np.random.default_rng(4)
    rows = np.concatenate([generator.normal(size=(80, 7)) * (i + 1) + 9 * i for i in range(4)] + [np.ones((30, 7))])
    write_table(folder / "<b>rows&.csv", [*TEXTS, "it's", "f", "g"], rows.tolist())
    run(folder, "hdbscan", "<b>rows&.csv", "--min-cluster-size", 8, "--report", "report.html")


def dense_places(folder):
    """More clusters than the list shows."""
    places = np.random.default_rng(4).normal(size=(150, 2)) * 1e9
    np.save(folder / "rows.npy", np.repeat(places, 4, axis=0))
    run(folder, "dbscan", "rows.npy", "--min-samples", 3, "--report", "report.html")


def outliers(folder):
    """Scores over many magnitudes, some infinite."""
    generator = np.random.default_rng(6)
    many = generator.normal(size=(2500, 7)) * np.logspace(-6, 6, 7)
    rows = np.concatenate([many, np.ones((40, 7)), np.full((3, 7), 1e9)])
    lines = [[*row, quoted(TEXTS[i % 4])] for i, row in enumerate(rows.tolist())]
    write_table(folder / "<b>rows&.csv", [*TEXTS, "it's", "f", "g", "kind"], lines)
    run(folder, "lof", "<b>rows&.csv", "--label", "kind", "--normal", TEXTS[2], "--duplicates", "inf",
        "--report", "report.html")  # fmt: skip


def graph_outliers(folder):
    """No table: nothing to draw but the scores."""
    np.save(folder / "rows.npy", np.random.default_rng(7).normal(size=(400, 3)))
    run(folder, "knn", "rows.npy", "-k", 9, "-o", "graph.npz")
    run(folder, "lof", "--graph", "graph.npz", "--score", "loop", "--report", "report.html")


def no_outliers(folder):
    np.save(folder / "rows.npy", np.random.default_rng(7).normal(size=(100, 3)))
    run(folder, "lof", "rows.npy", "--top", 0, "--report", "report.html")


def embedding(folder):
    run(folder, "generate", "swiss-roll", "-n", 600, "--seed", 3, "-o", "roll.npy", "--parameters", "truth.npy")
    run(folder, "lle", "roll.npy", "--variant", "modified", "--parameters", "truth.npy", "--report", "report.html")


def pieces(folder):
    """Two components in three dimensions, with labels."""
    generator = np.random.default_rng(9)
    rows = np.concatenate([generator.normal(size=(150, 5)), generator.normal(size=(120, 5)) + 100])
    lines = [[*row, quoted(TEXTS[i % 4])] for i, row in enumerate(rows.tolist())]
    write_table(folder / "rows.csv", [*"abcde", "kind"], lines)
    run(folder, "lle", "rows.csv", "-k", 8, "--dim", 3, "--label", "kind", "--report", "report.html")


def maps(folder):
    """A country with two outlying parts; six old features are gone, one is split, 14 moved by more than half."""
    mainland = [(x, y) for x in range(8) for y in range(6)]
    far = [(150, -40), (151, -40), (-60, 45)]
    moved = [(2 * i, 8) for i in range(14)]
    old = polygons(*mainland, *far, *moved)
    halves = [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.5)]
    new = polygons(*mainland[6:], *far[1:], *((x + 0.6, y) for x, y in moved), (1, 6))
    new += polygons(*halves, (8.2, 2), size=0.5)
    names = TEXTS + [f"old {i}" for i in range(len(old))]
    layer(folder / "<b>old&.geojson", old, names[: len(old)])
    layer(folder / "new.geojson", new, [f"new {i}" for i in range(len(new))])
    run(folder, "match", "<b>old&.geojson", "new.geojson", "--id", "name", "--report", "report.html")


MAKERS = [images, texts, neighbors, radius, contents, regression, clusters, many_clusters, dense_clusters,
          dense_places, outliers, graph_outliers, no_outliers, embedding, pieces, maps]  # fmt: skip


class Pages:
    def __init__(self, folder):
        self.paths, self.missing = {}, {}
        for make in MAKERS:
            (folder / make.__name__).mkdir()
            try:
                make(folder / make.__name__)
                self.paths[make.__name__] = folder / make.__name__ / "report.html"
            except (pytest.skip.Exception, AssertionError) as reason:
                self.missing[make.__name__] = reason
        self.measured = measure(self.paths, folder)

    def of(self, name):
        if name in self.missing:
            raise self.missing[name]
        return self.paths[name], self.measured[name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return Pages(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", [make.__name__ for make in MAKERS])
def test_page(pages, name):
    """Nothing overflows, legends have swatches, cards equal heights; light, dark and printed, wide and narrow."""
    path, frames = pages.of(name)
    check_one_file(path)
    assert set(FRAMES) <= set(frames)
    assert {key: found["faults"] for key, found in frames.items()} == {key: [] for key in frames}
    assert {key: found["width"] for key, found in frames.items()} == {key: key[1] for key in frames}
    light = "rgb(250, 249, 246)"
    papers = {"light": light, "bare": light, "dark": "rgb(20, 22, 26)", "print": "rgb(255, 255, 255)"}
    assert {key: found["paper"] for key, found in frames.items()} == {key: papers[key[0]] for key in frames}


def test_colors_of_legends(pages):
    frames = pages.of("texts")[1]
    light = {"right": "rgb(31, 111, 139)", "wrong": "rgb(200, 85, 61)"}
    dark = {"right": "rgb(95, 179, 207)", "wrong": "rgb(240, 135, 106)"}
    for medium, width in FRAMES:
        assert frames[medium, width]["legend"] == (dark if medium == "dark" else light)


def test_counts_have_whole_bins_and_ticks(pages):
    """Of neighbors within a radius: a bar for each number of them, and for each so many."""
    text = pages.of("radius")[0].read_text(encoding="utf-8")
    for title in ("How many lie within the radius", "Who is often a neighbor"):
        chart = text.split(f"<h2>{title}</h2>")[1].split("</svg>")[0]
        bars = re.findall(r"<title>(\S+)(?: to (\S+))?: [\d\u202f]+ rows?</title>", chart)
        widths = {int(to or from_) - int(from_) for from_, to in bars}
        assert len(bars) > 5 and len(widths) == 1
        assert all(re.fullmatch(r"[\d\u202f]+", tick) for tick in re.findall(r'class="soft">([^a-z<]+)</text>', chart))


def test_an_embedding_of_three_columns_has_three_pairs_of_axes_for_each_piece(pages):
    text = pages.of("pieces")[0].read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    pairs = ["column 1 over column 0", "column 2 over column 0", "column 2 over column 1"]
    assert captions == [f"piece {p}, {rows} rows: {pair}" for p, rows in ((0, 150), (1, 120)) for pair in pairs]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_map_is_zoomed_moved_and_searched(pages, width):
    path, frames = pages.of("maps")
    text = path.read_text(encoding="utf-8")
    found = frames["light", width]["map"]
    whole = found["whole"]
    # Without a script buttons of the style sheet enlarge the map; with it they give way to others.
    assert frames["light", width]["controls"] == ["+", "−", "whole map"] and frames["print", 718]["controls"] == []
    assert frames["bare", 390]["controls"] == ["1×", "2×", "4×", "8×"]
    # Two insets below a country that fills the width.
    assert text.count('class="inset"') == 2 and whole[2] == 8080
    assert not found["outAtWhole"] and found["inAtWhole"]
    near = lambda values: pytest.approx(values, abs=0.1)
    assert found["wheel"][2] == near(whole[2] * 2**-0.4)
    moved = [found["wheel"][0] + 20 * found["pixel"], found["wheel"][1] + 10 * found["pixel"]]
    assert found["drag"] == near(moved + found["wheel"][2:])
    assert found["pinch"][2:] == near([size / 2 for size in found["drag"][2:]])
    assert found["lifted"] == found["pinch"]  # a button released outside the window ends the drag
    assert found["right"] == near([found["pinch"][0] + found["pinch"][2] / 8] + found["pinch"][1:])
    assert found["plus"][2] == near(found["right"][2] / 1.5)
    assert found["reset"] == whole and found["button"][2] == near(whole[2] / 2)
    assert found["tip"] == found["name"] != ""
    # 14 moved, one split, six gone or come: each has a line, and the search leaves the one that was searched.
    assert len(found["all"]) == 23 and found["all"][-1] == found["word"] and found["searched"] == [found["word"]]
    assert found["status"] == "1 of 23"
    assert found["chosen"][2] < whole[2] / 2 and found["marked"] == 1
    # All doubtful pairs are in a list, and the first of them drawn.
    assert text.count('class="card pairing"') == 12
    pairs = text.split('aria-label="Doubtful pairs"')[1].split("</ol>")[0]
    assert pairs.count("<li") == int(re.search(r"(\d+) pairs are within a factor", text).group(1)) > 12


def alive(group):
    """Whether a process of the group runs; one that has ended and waits for its parent does not."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(state[2]) == group and state[0] not in "ZX":
            return True
    return False


def test_a_browser_that_hangs_is_killed_with_its_children_and_tried_once_more(monkeypatch, tmp_path):
    hanging = tmp_path / "hanging"
    hanging.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/groups\nsleep 50 &\nsleep 50\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(report_page, "CHROMIUM", str(hanging))
    monkeypatch.setattr(report_page, "SECONDS", 0.5)
    with pytest.raises(AssertionError, match="(?s)killed after 0.5 s.*killed after 0.5 s"):
        report_page.chromium("about:blank")
    groups = [int(line) for line in (tmp_path / "groups").read_text().split()]
    latest = time.monotonic() + 20
    while any(map(alive, groups)) and time.monotonic() < latest:
        time.sleep(0.02)
    assert not any(map(alive, groups))

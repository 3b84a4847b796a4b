"""The report, opened in headless Chromium: no console error, no request to anywhere, nothing overflowing, not blank."""

import html.parser
import json
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest
from test_answers import FASHION, fashion  # noqa: F401  (a fixture)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = [1200, 400]


def chromium(tmp_path, page, *arguments):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    return subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=2000",
            *arguments,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


def image_report(ok, folder, arrays):
    for name, array in zip(("train", "train_labels", "test", "test_labels"), arrays):
        np.save(folder / f"{name}.npy", array.reshape(len(array), -1) if array.ndim == 3 else array)
    ok(
        "classify", "train.npy", "test.npy", "--labels", "train_labels.npy", "--test-labels", "test_labels.npy",
        "--image-shape", "28x28", "--report", "report.html",
    )  # fmt: skip
    return folder / "report.html"


def table_report(ok, folder):
    """Class names that would break a page that does not escape, and long ones that would break its layout."""
    generator = np.random.default_rng(2)
    names = ["<script>alert(1)</script>", "a \"quoted\" & 'odd' one", "an extraordinarily long class name without an end", "é"]
    for name, rows in (("train", 200), ("test", 90)):
        codes = generator.integers(0, 4, rows)
        table = generator.normal(size=(rows, 3)) + codes[:, None]
        np.save(folder / f"<b>{name}&.npy", table)
        (folder / f"{name}.txt").write_text("".join(names[code] + "\n" for code in codes))
    ok(
        "classify", "<b>train&.npy", "<b>test&.npy", "--labels", "train.txt", "--test-labels", "test.txt", "-k", 12,
        "--weights", "distance", "--report", "report.html",
    )  # fmt: skip
    return folder / "report.html"


def clusters_report(ok, folder):
    """Column names and a file name that would break a page that does not escape, and long ones."""
    generator = np.random.default_rng(4)
    rows = np.concatenate([generator.normal(size=(60, 7)) + 5 * i for i in range(4)])
    names = ["<script>alert(1)</script>", "a & b", "it's", "an extraordinarily long column name without an end", "é", "f", "g"]
    quoted = ['"' + name + '"' for name in names]
    lines = [",".join(quoted)] + [",".join(repr(float(value)) for value in row) for row in rows]
    (folder / "<b>rows&.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ok("kmeans", "<b>rows&.csv", "--scan", "1..9", "--report", "report.html")
    return folder / "report.html"


def many_clusters_report(ok, folder):
    """More clusters than numbers have room, more rows than the sample, and columns of very different size."""
    generator = np.random.default_rng(5)
    np.save(folder / "many.npy", generator.normal(size=(3000, 30)) * np.logspace(-3, 9, 30))
    ok("kmeans", "many.npy", "-c", 60, "--max-iterations", 100, "--report", "report.html")
    return folder / "report.html"


def outliers_report(ok, folder):
    """Column names, labels and a file name that would break a page, and scores over many magnitudes, some infinite."""
    generator = np.random.default_rng(6)
    rows = np.concatenate([generator.normal(size=(2500, 7)) * np.logspace(-6, 6, 7), np.ones((40, 7)), np.full((3, 7), 1e9)])
    names = ["<script>alert(1)</script>", "a & b", "it's", "an extraordinarily long column name without an end", "é", "f", "g"]
    kinds = ["<i>good</i>", "a \"quoted\" & 'odd' one", "an-extraordinarily-long-class-name-without-an-end", "é"]
    quote = lambda text: '"' + text.replace('"', '""') + '"'
    lines = [",".join(map(quote, names + ["kind"]))]
    lines += [",".join([repr(float(v)) for v in row] + [quote(kinds[i % 4])]) for i, row in enumerate(rows)]
    (folder / "<b>rows&.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ok("lof", "<b>rows&.csv", "--label", "kind", "--normal", kinds[2], "--duplicates", "inf", "--report", "report.html")
    return folder / "report.html"


def graph_outliers_report(ok, folder):
    """No table: nothing to draw but the scores."""
    np.save(folder / "rows.npy", np.random.default_rng(7).normal(size=(400, 3)))
    ok("knn", "rows.npy", "-k", 9, "-o", "graph.npz")
    ok("lof", "--graph", "graph.npz", "--score", "loop", "--report", "report.html")
    return folder / "report.html"


def neighbors_report(ok, folder):
    """Pictures, and equal rows: pairs at distance 0."""
    images = np.random.default_rng(3).integers(0, 256, (150, 5, 4), dtype=np.uint8)
    images[7] = images[3]
    np.save(folder / "<b>rows&.npy", images)
    ok("knn", "<b>rows&.npy", "-k", 6, "--report", "report.html")
    return folder / "report.html"


def radius_report(ok, folder):
    """Some rows have no neighbors, and one has most of them."""
    generator = np.random.default_rng(3)
    np.save(folder / "table.npy", generator.normal(size=(300, 2)))
    np.save(folder / "queries.npy", generator.normal(size=(90, 2)) * 3)
    ok("radius", "table.npy", "queries.npy", "-r", 0.7, "--report", "report.html")
    return folder / "report.html"


def regression_report(ok, folder):
    """Target names that would break a page that does not escape, values of very different size, and no truth for rows alone."""
    generator = np.random.default_rng(12)
    names = ["x", "<script>alert(1)</script>", "an-extraordinarily-long-target-name-without-an-end-that-goes-on", "y"]
    for name, rows in (("train", 200), ("test", 60)):
        table = generator.normal(size=(rows, 4)) * [1, 1e9, 1e-9, 1]
        lines = [",".join(names)] + [",".join(repr(float(value)) for value in row) for row in table]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    ok("regress", "train.csv", "test.csv", "--target", names[2], "--target", names[1], "-r", 0.05, "--outlier", 0,
       "--report", "report.html")  # fmt: skip
    return folder / "report.html"


def contents_report(ok, folder):
    """Names that would break a page that does not escape, and values that are not finite: none is lost."""
    table = np.random.default_rng(13).normal(size=(90, 6)) * [1, 1e9, 1e-9, 0, 1, 1]
    table[3, 4], table[5, 5] = np.nan, np.inf
    np.save(folder / "<i>rows&.npy", table)
    ok("info", "<i>rows&.npy", "--image-shape", "2x3", "--report", "report.html")
    return folder / "report.html"


MAKERS = {"contents": contents_report, "neighbors": neighbors_report, "radius": radius_report, "regression": regression_report}


@pytest.fixture(params=["images", "table", "clusters", "many clusters", "outliers", "graph outliers", *MAKERS])
def report(request, ok, tmp_path):
    if request.param in MAKERS:
        return MAKERS[request.param](ok, tmp_path)
    if request.param == "outliers":
        return outliers_report(ok, tmp_path)
    if request.param == "graph outliers":
        return graph_outliers_report(ok, tmp_path)
    if request.param == "clusters":
        return clusters_report(ok, tmp_path)
    if request.param == "many clusters":
        return many_clusters_report(ok, tmp_path)
    if request.param == "images":
        return image_report(ok, tmp_path, request.getfixturevalue("fashion"))
    return table_report(ok, tmp_path)


class References(html.parser.HTMLParser):
    """Everything that a page could load, and whether its tags close in order."""

    VOID = {"meta", "img", "br", "rect", "link", "input", "hr", "col"}

    def __init__(self):
        super().__init__()
        self.found = []
        self.open = []
        self.tags = set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.found += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action", "xlink:href")]
        assert not [name for name, _ in attributes if name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_report_is_one_file(report):
    text = report.read_text(encoding="utf-8")
    references = References()
    references.feed(text)
    assert references.open == []
    assert all(value.startswith("data:image/png;base64,") for value in references.found)
    assert "script" not in references.tags and "svg" in references.tags
    assert not re.search(r"https?://|@import|url\(", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_report_in_a_browser(report, tmp_path, width):
    picture = tmp_path / "screenshot.png"
    log = tmp_path / "net.json"
    done = chromium(
        tmp_path, report, f"--window-size={max(width, 500)},700", f"--screenshot={picture}", f"--log-net-log={log}"
    )
    assert picture.is_file(), done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    assert has_more_colors(picture, 50)
    # Chromium's own services may ask for their hosts; nothing that this page started may.
    assert not [url for url in urls_of(log) if url.startswith("file:") and not url.endswith("report.html")]


def urls_of(log):
    text = log.read_text()
    try:
        events = json.loads(text)["events"]
    except json.JSONDecodeError:  # cut off when the browser ended
        return re.findall(r'"url":"([^"]+)"', text)
    return [event["params"]["url"] for event in events if "url" in event.get("params", {})]


def test_report_does_not_overflow(report, tmp_path):
    """Frames of the wanted widths around a copy of the page; each copy measures itself and tells the page around it."""
    measure = """<script>addEventListener('load', () => { const wide = [];
      const root = document.documentElement;
      if (root.scrollWidth > root.clientWidth) wide.push('page');
      for (const e of document.querySelectorAll('body *')) {
        if (e.closest('svg') && e.tagName.toLowerCase() !== 'svg') continue;
        if (e.clientWidth > 0 && e.scrollWidth > e.clientWidth) wide.push(e.tagName + '.' + (e.getAttribute('class') || ''));
        const box = e.getBoundingClientRect();
        if (box.right > root.clientWidth + 0.5 || box.left < -0.5) wide.push('outside ' + e.tagName);
      }
      for (const s of document.querySelectorAll('svg[role]')) {
        const out = s.getBoundingClientRect();
        for (const e of s.querySelectorAll('text, rect, circle, path, polygon, polyline')) {
          const box = e.getBoundingClientRect();
          if (box.left < out.left - 1 || box.right > out.right + 1 || box.top < out.top - 1 || box.bottom > out.bottom + 1)
            wide.push('outside its svg: ' + e.textContent);
        }
      }
      parent.postMessage({wide: wide, width: root.clientWidth}, '*'); });</script>"""
    text = report.read_text(encoding="utf-8")
    text = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", text)
    (tmp_path / "copy.html").write_text(text.replace("</body>", measure + "</body>"), encoding="utf-8")
    frames = tmp_path / "frames.html"
    frames.write_text(
        "<script>const told = []; addEventListener('message', e => { told.push(e.data);"
        " document.title = 'MEASURED ' + JSON.stringify(told); });</script>"
        + "".join(f"<iframe src='copy.html' style='width:{width}px;height:900px;border:0'></iframe>" for width in WIDTHS)
    )
    done = chromium(tmp_path, frames, "--window-size=1700,1000", "--dump-dom", "--allow-file-access-from-files")
    found = re.search(r"<title>MEASURED (.*?)</title>", done.stdout)
    assert found, done.stdout[-2000:] + done.stderr
    measured = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert sorted(measured, key=lambda told: -told["width"]) == [{"wide": [], "width": width} for width in WIDTHS]


def has_more_colors(path, count):
    """Whether an 8-bit RGB or RGBA PNG, decoded by hand as far as that takes, has more distinct colors."""
    raw = path.read_bytes()
    at, packed = 8, b""
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at : at + 8])
        body = raw[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    assert depth == 8 and color in (2, 6)
    channels = 3 if color == 2 else 4
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    colors = set()
    above = np.zeros(width * channels, np.uint8)
    for line in lines:
        above = unfilter(line[0], line[1:], above, channels)
        colors.update(map(bytes, above.reshape(-1, channels)))
        if len(colors) > count:
            return True
    return False


def unfilter(kind, line, above, channels):
    if kind == 0:
        return line.copy()
    if kind == 1:
        return np.cumsum(line.reshape(-1, channels), axis=0, dtype=np.uint8).ravel()
    if kind == 2:
        return line + above
    out = np.zeros(len(line), np.uint8)
    for i in range(len(line)):
        left = int(out[i - channels]) if i >= channels else 0
        up = int(above[i])
        corner = int(above[i - channels]) if i >= channels else 0
        if kind == 3:
            guess = (left + up) // 2
        else:
            distances = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
            guess = (left, up, corner)[distances.index(min(distances))]
        out[i] = (int(line[i]) + guess) & 255
    return out

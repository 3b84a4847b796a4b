"""What every report must be: one file, and in headless Chromium no console error, no request to anywhere, nothing
overflowing, not blank."""

import html.parser
import json
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = [1200, 400]


def check_page(page, tmp_path):
    check_one_file(page)
    for width in WIDTHS:
        check_in_a_browser(page, tmp_path, width)
    check_overflow(page, tmp_path)


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


class References(html.parser.HTMLParser):
    """Everything that a page could load, and whether its tags close in order."""

    VOID = {"meta", "img", "br", "rect", "link", "input", "hr", "col", "wbr"}

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


def check_one_file(page):
    text = page.read_text(encoding="utf-8")
    references = References()
    references.feed(text)
    assert references.open == []
    assert all(value.startswith("data:image/png;base64,") for value in references.found)
    assert "script" not in references.tags and "svg" in references.tags
    assert not re.search(r"https?://|@import|url\(", text)


def check_in_a_browser(page, tmp_path, width):
    picture = tmp_path / f"screenshot-{width}.png"
    log = tmp_path / f"net-{width}.json"
    done = chromium(
        tmp_path, page, f"--window-size={max(width, 500)},700", f"--screenshot={picture}", f"--log-net-log={log}"
    )
    assert picture.is_file(), done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    assert has_more_colors(picture, 50)
    # Chromium's own services may ask for their hosts; nothing that this page started may.
    assert not [url for url in urls_of(log) if url.startswith("file:") and not url.endswith(page.name)]


def urls_of(log):
    text = log.read_text()
    try:
        events = json.loads(text)["events"]
    except json.JSONDecodeError:  # cut off when the browser ended
        return re.findall(r'"url":"([^"]+)"', text)
    return [event["params"]["url"] for event in events if "url" in event.get("params", {})]


def check_overflow(page, tmp_path):
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
    text = page.read_text(encoding="utf-8")
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

"""What every report must be, looked at by one start of headless Chromium for all pages of a test.

`measure` writes of each page a copy for each medium (light, dark and printed) beside a page that opens them one after
the other in frames, measures them by report_page.js and leaves what it found in its own text, which Chromium prints.
There is no protocol with Chromium that could wait for an answer: it ends by itself, or is killed with all its
processes.
"""

import base64
import hashlib
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 60
FLAGS = """--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check
--disable-extensions --disable-background-networking --disable-component-update --disable-sync --disable-breakpad
--password-store=basic --hide-scrollbars --mute-audio --enable-logging=stderr --allow-file-access-from-files
--window-size=1400,1000 --virtual-time-budget=120000 --dump-dom""".split()
# Medium, width in pixels. A4 within the margins that browsers print with is 718 pixels wide.
# "bare" is the page without its script, and only of pages that have one.
FRAMES = [("light", 1280), ("light", 390), ("dark", 1280), ("dark", 390), ("print", 718)]


def chromium(url):
    """What the page at `url` measured, and what Chromium logs. Tried twice, each time with a new profile."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    logs = []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="vicinal-chromium-", ignore_cleanup_errors=True) as folder:
            text, log, ended = start(url, pathlib.Path(folder))
        found = re.search(r'<pre id="found">MEASURED (.*?)</pre>', text, re.DOTALL)
        if ended and found:
            return json.loads(html.unescape(found.group(1))), log
        logs.append(f"{'ended' if ended else f'killed after {SECONDS} s'}: {log[-3000:]}\n{text[-500:]}")
    raise AssertionError("Chromium measured no page:\n" + "\n".join(logs))


def start(url, folder):
    """Output goes to files: a pipe would stay open as long as any process that Chromium started."""
    home = {name: str(folder) for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    environment["DBUS_SESSION_BUS_ADDRESS"] = "disabled:"
    with open(folder / "out", "wb") as out, open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", url], stdin=subprocess.DEVNULL, stdout=out,
            stderr=log, start_new_session=True, env=environment | home)  # fmt: skip
        try:
            process.wait(timeout=SECONDS)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # all of them have ended
            process.wait(timeout=10)
    read = lambda name: (folder / name).read_text(encoding="utf-8", errors="replace")
    return read("out"), read("log"), ended


def for_medium(text, medium):
    """The page as it is in a medium, whatever the one is that it is opened in."""
    if medium == "dark":
        text = text.replace("color-scheme: light dark", "color-scheme: dark")
        return text.replace("@media (prefers-color-scheme: dark)", "@media all")
    text = text.replace("@media (prefers-color-scheme: dark)", "@media not all")
    if medium == "bare":
        return re.sub("<script>.*</script>", "", text, flags=re.DOTALL)
    return text.replace("@media print", "@media all") if medium == "print" else text


def measure(pages, folder):
    """Of each page, {name: path}, what report_page.js found in each frame: {name: {(medium, width): found}}."""
    frames = []
    for name, path in pages.items():
        text = path.read_text(encoding="utf-8")
        shown = FRAMES + [("bare", 390)] * ("<script>" in text)
        for medium in {medium for medium, _ in shown}:
            (folder / f"{name}.{medium}.html").write_text(for_medium(text, medium), encoding="utf-8")
        frames += [{"name": name, "medium": medium, "width": width} for medium, width in shown]
    script = (pathlib.Path(__file__).parent / "report_page.js").read_text(encoding="utf-8")
    (folder / "frames.html").write_text(
        "<!DOCTYPE html><meta charset='utf-8'><pre id='found'></pre>"
        f"<script>{script}\nmeasureAll({json.dumps(frames)})</script>",
        encoding="utf-8",
    )
    found, log = chromium((folder / "frames.html").as_uri())
    assert "CONSOLE" not in log, log
    measured = {name: {} for name in pages}
    for frame in found:
        measured[frame["name"]][frame["medium"], frame["width"]] = frame["found"]
    return measured


class References(html.parser.HTMLParser):
    """Everything that a page could load, its scripts, and whether its tags close in order."""

    VOID = {"meta", "img", "br", "rect", "link", "input", "hr", "col", "wbr"}

    def __init__(self):
        super().__init__()
        self.found = []
        self.open = []
        self.tags = set()
        self.policy = ""
        self.scripts = []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        loads = ("src", "srcset", "data", "action", "xlink:href", "href")
        self.found += [value for name, value in attributes if name in loads]
        assert not [name for name, _ in attributes if name.startswith("on")]
        if tag == "meta" and dict(attributes).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attributes)["content"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def check_one_file(page):
    """Loads nothing; a script, where there is one, is allowed by its hash alone."""
    text = page.read_text(encoding="utf-8")
    references = References()
    references.feed(text)
    assert references.open == []
    assert all(value.startswith("data:image/png;base64,") for value in references.found)
    assert "svg" in references.tags
    assert not re.search(r"https?://|@import|url\(", text)
    assert references.policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert sum(map(len, references.scripts)) < 12000
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in references.scripts]
    allowed = re.findall(r"sha256-([^']+)", references.policy)
    assert allowed == hashes, f"the policy of the page allows {allowed}, but its scripts are {hashes}"
    assert "script-src" not in re.sub(r"script-src ('sha256-[^']+'\s?)+", "", references.policy)

"""Checks the HTML of the site: every link leads to a page, every anchor to a place in it, and nothing is loaded from
another address."""

import html.parser
import os
import re
import urllib.parse

# Elements that load what they name; a link `a` loads nothing until a reader follows it.
LOADED = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "video": "src", "audio": "src"}
# Of `link` the kinds that only say where something is.
NAMES_ONLY = {"index", "search", "next", "prev", "canonical", "author", "help", "copyright", "top", "up"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])
        if tag == "link" and given.get("href") and not NAMES_ONLY.intersection((given.get("rel") or "").split()):
            self.loaded.append(given["href"])


def is_elsewhere(address):
    parts = urllib.parse.urlsplit(address)
    return bool(parts.netloc) or parts.scheme in {"http", "https"}


def check(folder):
    """Returns what was checked in a sentence; ends the program where something is wrong."""
    pages = {path.relative_to(folder).as_posix(): Page(path.read_text()) for path in folder.glob("**/*.html")}
    wrong, links = [], 0
    for name, page in pages.items():
        wrong += [f"{name} loads {address} from another address" for address in page.loaded if is_elsewhere(address)]
        local = [address for address in page.links + page.loaded
                 if not is_elsewhere(address) and not address.startswith(("mailto:", "data:", "javascript:"))]
        links += len(local)
        for address in local:
            parts = urllib.parse.urlsplit(address)
            path = urllib.parse.unquote(parts.path)
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not (folder / target).exists():
                wrong.append(f"{name} links to {address}, which is not there")
            elif parts.fragment and target in pages:
                anchor = urllib.parse.unquote(parts.fragment)
                if anchor not in pages[target].anchors:
                    wrong.append(f"{name} links to {address}, which has no such place")
    for path in [*folder.glob("**/*.css"), *folder.glob("**/*.js")]:
        for address in re.findall(r"(?:url\(|@import\s*)[\"']?(https?://[^\"')]+)", path.read_text()):
            wrong.append(f"{path.relative_to(folder)} loads {address} from another address")
    if wrong:
        raise SystemExit("\n".join(wrong))
    return f"{len(pages)} pages, {links} links checked, nothing loaded from elsewhere;"

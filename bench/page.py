"""What the programs share that write pages of docs from results: texts with their claims, and sections of a page."""

import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLAIMS = ROOT / "bench" / "claims"
sys.path.insert(0, str(ROOT / "tests" / "manners"))
from test_claims import computed, read_result  # noqa: E402


class Writer:
    """Texts of a page from one result, each with the claim that tests/manners/test_claims.py checks."""

    def __init__(self, page, path):
        self.page, self.name, self.result, self.claims = page, path.name, read_result(path), []

    def text(self, text, values):
        claim = {"page": self.page, "text": text, "result": self.name, "values": values}
        self.claims.append(claim)
        return computed(claim, {self.name: self.result})

    def save(self, section, texts, claims):
        """Replaces the section of the page, and writes the file `claims`."""
        page = ROOT / self.page
        page.write_text(replaced(page.read_text(), section, "\n\n".join(texts)))
        (CLAIMS / claims).write_text(json.dumps(self.claims, indent=1, ensure_ascii=False) + "\n")


def filled(text, indent=""):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


def replaced(page, name, text):
    """The page with another text between the lines `<!-- NAME -->` and `<!-- end -->`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"the page has no section {name}")
    return pattern.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)

"""The pages of the repository as sources of the site: README.md becomes index.md, docs/NAME.md becomes NAME.md. Links,
pictures and the menu are rewritten; the text stays."""

import os
import pathlib
import re
import shutil

FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
PICTURE = re.compile(r'<picture>\s*<source[^>]*srcset="([^"]+)">\s*<img\s+alt="([^"]*)"\s+src="([^"]+)">\s*</picture>')

# Pages outside docs/.
OTHERS = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
          "SECURITY.md": "security.md", "bench/README.md": "benchmarks.md", "bench/results/README.md": "results.md"}
# Folders to which pages link, and the page of the site about them.
FOLDERS = {"examples": "programs.md", "bench/results": "results.md"}
# The menu: of each part the pages in their order. A page that is in none is an error of Sphinx.
MENU = [
    ("Start", ["python", "tutorials/README", "tutorials/fashion-mnist", "tutorials/kdd", "tutorials/swiss-roll"]),
    ("Tasks", ["neighbors", "radius", "classify-and-regress", "cross-validation", "outliers", "clustering", "density",
               "embedding", "graphs", "coclusters", "matching", "imputation", "files", "scale", "distributed", "ranks"]),
    ("Coming from", ["from-scikit-learn", "scikit-learn-estimators", "scikit-learn", "from-faiss", "from-cuml",
                     "from-pyod", "from-geopandas"]),
    ("Reference", ["metrics", "reference/python", "reference/cpp", "reference/command", "command", "programs", "limits"]),
    ("Examples by the command", ["examples/README", "examples/*"]),
    ("How it works", ["contract", "architecture", "performance", "peers", "growth", "papers", "benchmarks", "results",
                      "design/*"]),
    ("Project", ["changelog", "contributing", "security"]),
]


def name_in_site(path):
    """Of a page of the repository, or None: docs/examples/iris.md is examples/iris.md."""
    if path in OTHERS:
        return OTHERS[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/")
    return None


def title(page):
    return page.read_text().partition("\n")[0].removeprefix("# ")


class Writer:
    def __init__(self, root, source, headers):
        self.root = root
        self.source = source
        self.headers = headers

    def link(self, page, name):
        """The replacement of a match of LINK in `page`, which is `name` in the site."""

        def replaced(match):
            shown, target, anchor = match.group(1), match.group(2), match.group(3) or ""
            if not target or "://" in target or target.startswith("mailto:"):
                return match.group()
            path = os.path.normpath(os.path.join(os.path.dirname(page), target))
            if shown.endswith(".md") and target.endswith(".md"):
                shown = title(self.root / path)
            return f"[{shown}]({self.relative(self.place(path), name)}{anchor})"

        return replaced

    def place(self, path):
        """Where the site has a path of the repository; files that are no pages are copied."""
        if page := name_in_site(path):
            return page
        if path.startswith("include/vicinal/") and pathlib.Path(path).name in self.headers:
            return self.headers[pathlib.Path(path).name]
        if path in FOLDERS:
            return FOLDERS[path]
        file = self.root / path
        if file.is_dir():
            raise SystemExit(f"The site has no page for the folder {path}, to which a page links")
        copy = self.source / "repository" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
        return f"repository/{path}"

    def relative(self, target, name):
        return os.path.relpath(target, os.path.dirname(name) or ".")

    def picture(self, page, name):
        def replaced(match):
            dark, alt, light = match.groups()
            alt = re.sub(r"\s+", " ", alt)
            shown = []
            for theme, target in (("light", light), ("dark", dark)):
                path = os.path.normpath(os.path.join(os.path.dirname(page), target))
                copy = self.source / "figures" / pathlib.Path(path).name
                copy.parent.mkdir(exist_ok=True)
                shutil.copy(self.root / path, copy)
                place = self.relative(f"figures/{copy.name}", name)
                shown.append(f":::{{image}} {place}\n:class: only-{theme}\n:alt: {alt}\n:::\n")
            return "\n".join(shown)

        return replaced

    def write(self, page, name, more=""):
        text = (self.root / page).read_text()
        text = PICTURE.sub(self.picture(page, name), text)
        pieces, at = [], 0
        for fence in FENCE.finditer(text):
            pieces += [LINK.sub(self.link(page, name), text[at:fence.start()]),
                       fence.group().replace("```console-output", "```text")]
            at = fence.end()
        pieces.append(LINK.sub(self.link(page, name), text[at:]))
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(pieces) + more)


def programs(root):
    """A page with the C++ programs of examples/."""
    lines = ["# C++ programs", "", "Each program stands alone and is built by `-DVICINAL_BUILD_EXAMPLES=ON`; the tests "
             "compile and run them.", ""]
    for path in sorted((root / "examples").glob("*.cpp")):
        text = path.read_text()
        first = re.match(r"(?:// .*\n)+", text)
        about = re.sub(r"^// ?", "", first.group(), flags=re.MULTILINE).strip() if first else ""
        code = text[first.end():].lstrip("\n") if first else text
        lines += [f"## {path.stem}", "", about, "", f"```cpp\n{code.rstrip()}\n```", ""]
    return "\n".join(lines)


def menu(names):
    """Toctrees for index.md; a pattern stands for the pages that no earlier entry names."""
    parts, seen = [], {"index"}
    for caption, entries in MENU:
        chosen = []
        for entry in entries:
            found = [entry]
            if entry.endswith("*"):
                found = sorted(name for name in names if name.rsplit("/", 1)[0] == entry[:-2] and name not in seen)
            chosen += found
            seen.update(found)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(chosen) + "\n```\n")
    return "\n" + "\n".join(parts)


def write(root, source, headers):
    """Writes all pages; `headers` says by a header's name which page of the site documents it."""
    writer = Writer(root, source, headers)
    names = {str(path.relative_to(root)): name_in_site(str(path.relative_to(root)))
             for path in [*(root / page for page in OTHERS), *(root / "docs").glob("**/*.md")]}
    for page, name in names.items():
        writer.write(page, name, menu([n.removesuffix(".md") for n in names.values()]) if name == "index.md" else "")
    (source / "programs.md").write_text(programs(root))

"""Draws docs/figures/speed-light.svg and speed-dark.svg, README's picture, from bench/results.

    figures.py [--check]

Each panel is one result of `vicinal-bench knn --peers`: median seconds of a whole call, ours and the three fastest
other libraries, and how many of the queries got rows that are not the nearest. --check only says whether the figures in
docs are those that would be drawn.
"""

import html
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PANELS = [
    ("Fashion-MNIST", "60,000 x 784 bytes, 10,000 queries", "peers-fashion-xeon2-2026-11-22-43a0421.json"),
    ("Gaussian, 128 columns", "100,000 rows, 10,000 queries", "peers-gaussian128-xeon2-2026-11-22-43a0421.json"),
    ("Gaussian, 41 columns", "100,000 rows, 10,000 queries", "peers-gaussian41-xeon2-2026-11-22-8213057.json"),
    ("KDD Cup 99, 41 columns", "100,000 rows, 10,000 queries", "peers-kdd-xeon2-2026-11-22-8213057.json"),
    ("Uniform, 3 columns", "1,000,000 rows, 200,000 queries", "peers-uniform3-xeon2-2026-11-22-8213057.json"),
    ("Uniform, 8 columns", "1,000,000 rows, 200,000 queries", "peers-uniform8-xeon2-2026-11-22-8213057.json"),
]
NAMES = {"sklearnex": "scikit-learn-intelex", "sklearn": "scikit-learn", "sklearn-tree": "scikit-learn tree",
         "faiss": "FAISS", "scipy": "SciPy", "libann": "libANN"}
COLOURS = {
    "light": {"text": "#1f2328", "soft": "#59636e", "ours": "#0969da", "other": "#afb8c1", "wrong": "#bc4c00"},
    "dark": {"text": "#e6edf3", "soft": "#9198a1", "ours": "#4493f8", "other": "#545d68", "wrong": "#f0883e"},
}
COLUMNS, WIDTH, HEIGHT, LEFT, BAR, ROW = 3, 320, 158, 128, 84, 22


def lines_of(name):
    """(library, seconds, wrong queries) of a result, ours first."""
    result = json.loads((ROOT / "bench/results" / name).read_text())
    timed = [peer for peer in result["peers"] if peer.get("total")]
    fastest = sorted(timed, key=lambda peer: peer["total"]["median"])[:3]
    queries = result["queries"] or result["rows"]
    others = [(NAMES.get(peer["name"], peer["name"]), peer["total"]["median"], queries - peer["correct_rows"])
              for peer in fastest]
    return [("vicinal", result["seconds"]["median"], result["wrong_queries"]), *others], result["k"]


def text(x, y, words, colour, size=12, weight="normal", anchor="start"):
    return (f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}">'
            f"{html.escape(words)}</text>\n")


def panel(x, y, title, size, name, colours):
    lines, k = lines_of(name)
    most = max(seconds for _, seconds, _ in lines)
    drawn = text(x, y + 14, title, colours["text"], 13, "600") + text(x, y + 30, f"{size}, k = {k}", colours["soft"], 11)
    for i, (library, seconds, wrong) in enumerate(lines):
        top = y + 42 + ROW * i
        ours = i == 0
        drawn += text(x + LEFT - 8, top + 12, library, colours["text"], 12, "600" if ours else "normal", "end")
        width = max(1.0, BAR * seconds / most)
        drawn += (f'<rect x="{x + LEFT}" y="{top + 2}" width="{width:.1f}" height="13" rx="2" '
                  f'fill="{colours["ours" if ours else "other"]}"/>\n')
        said = f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
        drawn += text(x + LEFT + width + 6, top + 12, said, colours["text"], 11, "600" if ours else "normal")
        if wrong:
            after = x + LEFT + width + 12 + 6.2 * len(said)
            drawn += text(after, top + 12, f"{wrong:,} wrong", colours["wrong"], 11)
    return drawn


def figure(colours):
    rows = -(-len(PANELS) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 4
    drawn = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">\n'
             "<title>Seconds of exact k-nearest-neighbor searches, and wrong answers, beside other libraries</title>\n")
    for i, (title, size, name) in enumerate(PANELS):
        drawn += panel(WIDTH * (i % COLUMNS) + 4, HEIGHT * (i // COLUMNS), title, size, name, colours)
    return drawn + "</svg>\n"


def main():
    stale = []
    for theme, colours in COLOURS.items():
        path = ROOT / "docs/figures" / f"speed-{theme}.svg"
        drawn = figure(colours)
        if not path.exists() or path.read_text() != drawn:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(drawn)
    if "--check" in sys.argv and stale:
        sys.exit(f"docs/figures/{', '.join(stale)}: not what bench/results say; run bench/figures.py")
    print(f"{len(COLOURS)} figures, {len(stale)} drawn anew")


if __name__ == "__main__":
    main()

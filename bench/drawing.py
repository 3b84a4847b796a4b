"""What the pictures of figures.py and example_figures.py are drawn with: the themes, strokes of SVG and the command."""

import csv
import html
import os
import subprocess
import sys

THEMES = {
    "light": {
        "text": "#1f2328", "soft": "#59636e", "ours": "#0969da", "other": "#afb8c1", "wrong": "#bc4c00",
        "line": "#d1d9e0", "paper": "#ffffff", "dot": "#8c959f",
        "classes": ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#1b7c83", "#9a6700", "#57606a"],
        "ramp": ["#0a3069", "#0969da", "#1b7c83", "#2da44e", "#bf8700", "#bc4c00", "#a40e26"]},
    "dark": {
        "text": "#e6edf3", "soft": "#9198a1", "ours": "#4493f8", "other": "#545d68", "wrong": "#f0883e",
        "line": "#3d444d", "paper": "#0d1117", "dot": "#8b949e",
        "classes": ["#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#f778ba", "#39c5cf", "#d29922", "#9198a1"],
        "ramp": ["#c297ff", "#6cb0ff", "#39c5cf", "#3fb950", "#e3b341", "#f0883e", "#ff7b72"]},
}


# ---- drawing ---------------------------------------------------------------------------------------------------------

def number(value):
    """With one decimal at most, so that files are small."""
    rounded = round(value, 1) + 0.0
    return str(int(rounded)) if rounded == int(rounded) else str(rounded)


def text(x, y, words, colour, size=12, weight="normal", anchor="start", halo=""):
    around = f'stroke="{halo}" stroke-width="3" paint-order="stroke" ' if halo else ""
    return (f'<text x="{number(x)}" y="{number(y)}" fill="{colour}" font-size="{size}" font-weight="{weight}" '
            f'{around}text-anchor="{anchor}">{html.escape(words)}</text>\n')


def svg(width, height, title, drawn):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">\n'
            f"<title>{html.escape(title)}</title>\n{drawn}</svg>\n")


def dots(points, colour, size, opacity=1.0):
    """One path of round dots; each but the first costs a dozen bytes."""
    if not points:
        return ""
    path = "".join(f"M{number(x)} {number(y)}h0" for x, y in points)
    return (f'<path d="{path}" stroke="{colour}" stroke-width="{size}" stroke-linecap="round" fill="none"'
            f'{f" stroke-opacity={chr(34)}{opacity}{chr(34)}" if opacity < 1 else ""}/>\n')


def circle(x, y, radius, stroke, width=1.5, fill="none", opacity=1.0):
    return (f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}" fill-opacity="{opacity}" '
            f'stroke="{stroke}" stroke-width="{width}"/>\n')


def lines(segments, colour, width=1, opacity=1.0):
    path = "".join(f"M{number(a)} {number(b)}L{number(c)} {number(d)}" for a, b, c, d in segments)
    return f'<path d="{path}" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}" fill="none"/>\n'


def frame(x, y, width, height, theme):
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="none" stroke="{theme["line"]}"/>\n')


def heading(x, y, title, note, theme):
    return text(x, y + 14, title, theme["text"], 13, "600") + text(x, y + 30, note, theme["soft"], 11)


class Panel:
    """Maps a square or a box of the data to a place in the picture; equal units on both axes unless stretched."""

    def __init__(self, points, x, y, width, height, margin=14, stretched=False):
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        self.left, self.low = min(xs), min(ys)
        span_x, span_y = max(xs) - self.left, max(ys) - self.low
        self.scale_x, self.scale_y = (width - 2 * margin) / span_x, (height - 2 * margin) / span_y
        if not stretched:
            self.scale_x = self.scale_y = min(self.scale_x, self.scale_y)
        self.x = x + (width - self.scale_x * span_x) / 2
        self.bottom = y + (height + self.scale_y * span_y) / 2

    def __call__(self, point):
        return self.x + self.scale_x * (point[0] - self.left), self.bottom - self.scale_y * (point[1] - self.low)


def bars(x, y, left, width, rows, theme, unit, row=22):
    """rows: (name, value, note); the first is ours."""
    most = max(value for _, value, _ in rows)
    drawn = ""
    for i, (name, value, note) in enumerate(rows):
        top, ours = y + row * i, i == 0
        drawn += text(x + left - 8, top + 12, name, theme["text"], 12, "600" if ours else "normal", "end")
        length = max(1.0, width * value / most)
        drawn += (f'<rect x="{x + left}" y="{top + 2}" width="{length:.1f}" height="13" rx="2" '
                  f'fill="{theme["ours" if ours else "other"]}"/>\n')
        digits = 2 if value < 1 else 3
        said = (f"{value:.{digits}g}" if value < 100 else f"{value:,.0f}") + f" {unit}"
        drawn += text(x + left + length + 6, top + 12, said, theme["text"], 11, "600" if ours else "normal")
        if note:
            drawn += text(x + left + length + 14 + 6.4 * len(said), top + 12, note, theme["wrong"], 11)
    return drawn


# ---- data ------------------------------------------------------------------------------------------------------------

class Skipped(Exception):
    """A picture cannot be drawn here."""


class Command:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *words):
        if not self.path:
            raise Skipped("there is no vicinal command")
        done = subprocess.run([self.path, *map(str, words)], cwd=self.folder, text=True, capture_output=True,
                              timeout=120, env=dict(os.environ, VICINAL_DEVICE="cpu"))
        if done.returncode == 5:
            raise Skipped(done.stderr.strip())
        if done.returncode:
            sys.exit(f"vicinal {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def write(self, name, rows):
        with open(self.folder / name, "w", newline="") as file:
            csv.writer(file).writerows(rows)

    def read(self, name):
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def points(self, name):
        return [tuple(float(value) for value in row.values()) for row in self.read(name)]

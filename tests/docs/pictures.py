"""The pictures that Python blocks of the documentation draw with matplotlib: in the colors of bench/drawing.py, in two
files, for light and for dark pages. Blocks save NAME.svg; its colors of the light theme become those of the dark one."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import figures
from drawing import THEMES

MOST_BYTES = 120_000
# Names of clips and marks, which matplotlib makes of what they show.
NAMES = re.compile(r"\b[mpC](?:\d_\d_)?[0-9a-f]{10}\b")


def environment(folder):
    """Writes matplotlib's settings into the folder, and returns the variables that name them."""
    light = {name: value.lstrip("#") for name, value in THEMES["light"].items() if isinstance(value, str)}
    colors = ", ".join(f"'{value.lstrip('#')}'" for value in THEMES["light"]["classes"])
    settings = folder / "matplotlibrc"
    settings.write_text(f"""backend: agg
svg.fonttype: none
svg.hashsalt: vicinal
savefig.transparent: True
savefig.bbox: tight
figure.constrained_layout.use: True
figure.dpi: 72
font.size: 11
axes.prop_cycle: cycler('color', [{colors}])
axes.edgecolor: {light["other"]}
axes.labelcolor: {light["text"]}
axes.titlecolor: {light["text"]}
axes.titlesize: 12
axes.spines.top: False
axes.spines.right: False
text.color: {light["text"]}
xtick.color: {light["other"]}
ytick.color: {light["other"]}
xtick.labelcolor: {light["soft"]}
ytick.labelcolor: {light["soft"]}
legend.frameon: False
image.interpolation: nearest
""")
    return {"MATPLOTLIBRC": str(settings), "MPLCONFIGDIR": str(folder), "SOURCE_DATE_EPOCH": "0"}


def in_theme(text, theme):
    """The picture with the colors of a theme, in fewer bytes: one group of marks, and numbers with two decimals."""
    light, other = THEMES["light"], THEMES[theme]
    pairs = {light[name]: other[name] for name in ("text", "soft", "other", "line")}
    pairs.update(zip(light["classes"], other["classes"]))
    text = re.sub(r"#[0-9a-f]{6}\b", lambda match: pairs.get(match.group(), match.group()), text)
    # Without what differs between versions and machines.
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\s*</g>\s*<g clip-path="url\(#\w+\)">\s*(?=<use)', "\n", text)
    text = re.sub(r"fill: (#[0-9a-f]{6}); stroke: \1\b", r"fill: \1", text)
    return re.sub(r"(?<=\d\.\d\d)\d+", "", text)


def check(folder, kept, write):
    """Compares the pictures that blocks drew below `folder` with those that are kept, or writes them. Returns how many
    there were."""
    drawn, stale = 0, []
    for path in sorted(pathlib.Path(folder).glob("**/*.svg")):
        made = path.read_text()
        if "Matplotlib" not in made[:3000]:
            continue  # of a command
        drawn += 1
        for theme in THEMES:
            text = in_theme(made, theme)
            assert len(text) < MOST_BYTES, f"{path.name}: {len(text)} bytes"
            there = kept / f"{path.stem}-{theme}.svg"
            if write:
                there.write_text(text)
            elif not there.exists() or not figures.same(NAMES.sub("", there.read_text()), NAMES.sub("", text)):
                stale.append(there.name)
    if stale:
        sys.exit(f"docs/figures/{', '.join(stale)}: out of date; run tests/docs/run.py --write --page PAGE")
    return drawn

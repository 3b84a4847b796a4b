"""Draws the pictures of README.md and docs/*.md, docs/figures/NAME-light.svg and NAME-dark.svg.

    figures.py [--check] [--command PATH] [NAME...]

Pictures of times come from bench/results, those of docs/examples from their data (example_figures.py); diagrams.py
draws those without data. The others show what the command answers on small made tables. --check compares instead of writing. A number may then differ by 0.15,
because embeddings have other last bits on another machine. Pictures that need the command, its plug-in for maps or a
data set are skipped without it.
"""

import argparse
import json
import math
import pathlib
import random
import re
import sys
import tempfile

import diagrams
import example_figures
from drawing import (THEMES, Command, Panel, Skipped, bars, circle, dots, frame, heading, lines, number, svg, text)

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
FIGURES = ROOT / "docs/figures"


def groups_of(points, labels):
    found = {}
    for point, label in zip(points, labels):
        found.setdefault(label, []).append(point)
    return found


# ---- pictures of times -----------------------------------------------------------------------------------------------

SPEED = [
    ("Fashion-MNIST", "60,000 x 784 bytes, 10,000 queries", "peers-fashion-xeon2-2026-11-22-43a0421.json"),
    ("Gaussian, 128 columns", "100,000 rows, 10,000 queries", "peers-gaussian128-xeon2-2026-11-22-43a0421.json"),
    ("Gaussian, 41 columns", "100,000 rows, 10,000 queries", "peers-gaussian41-xeon2-2026-11-22-8213057.json"),
    ("KDD Cup 99, 41 columns", "100,000 rows, 10,000 queries", "peers-kdd-xeon2-2026-11-22-8213057.json"),
    ("Uniform, 3 columns", "1,000,000 rows, 200,000 queries", "peers-uniform3-xeon2-2026-11-22-8213057.json"),
    ("Uniform, 8 columns", "1,000,000 rows, 200,000 queries", "peers-uniform8-xeon2-2026-11-22-8213057.json"),
]
NAMES = {"sklearnex": "scikit-learn-intelex", "sklearn": "scikit-learn", "sklearn-tree": "scikit-learn tree",
         "faiss": "FAISS", "scipy": "SciPy", "libann": "libANN", "pyarrow_float64": "pyarrow",
         "pyarrow": "pyarrow, own types"}


def result_of(name):
    return json.loads((RESULTS / name).read_text())


def wrong_queries(wrong):
    return f"{wrong:,} wrong" if wrong else ""


def speed(_):
    """Ours and the three fastest others, with wrong queries."""
    panels = []
    for title, size, name in SPEED:
        result = result_of(name)
        timed = [peer for peer in result["peers"] if peer.get("total")]
        fastest = sorted(timed, key=lambda peer: peer["total"]["median"])[:3]
        queries = result["queries"] or result["rows"]
        rows = [("vicinal", result["seconds"]["median"], result["wrong_queries"])]
        rows += [(NAMES.get(peer["name"], peer["name"]), peer["total"]["median"], queries - peer["correct_rows"])
                 for peer in fastest]
        panels.append((title, f"{size}, k = {result['k']}", rows, "s", wrong_queries))
    return panels


def device(_):
    jobs = result_of("knn-device-peers-h200-2026-11-22-5f7a399.json")["jobs"]
    panels = []
    for key in ("1Mx10k-d128", "1Mx100k-d64", "500kx20k-d17-k1"):
        job = jobs[key]
        rows = [("vicinal", job["results"]["vicinal"]["median_ms"], 0)]
        for name, title in (("torch float32", "torch float32"), ("torch tf32", "torch TF32"),
                            ("flashlib triton bfloat16", "FlashLib bf16")):
            peer = job["results"][name]
            rows.append((title, peer["median_ms"], peer["checked"] - peer["right"]))
        panels.append((f"{job['rows']:,} rows, {job['cols']} columns", f"{job['queries']:,} queries, k = {job['k']}",
                       rows, "ms", wrong_queries))
    return panels


def kmeans_speed(_):
    panels = []
    for job in result_of("kmeans-peers-xeon2-2026-11-22-8213057.json")["jobs"]:
        names = ("vicinal", "sklearn", "sklearnex")
        rows = [(NAMES.get(name, name), job[name]["ms_an_iteration"], "") for name in names]
        panels.append((f"{job['rows']:,} rows, {job['cols']} columns", f"{job['clusters']} clusters, one iteration",
                       rows, "ms", str))
    return sorted(panels, key=lambda panel: -panel[2][0][1])


def read_csv(_):
    least = result_of("read-csv-epyc2-2026-11-22-f2aa506.json")["turns"]
    rows = [(NAMES.get(name, name), sorted(turn[name]["seconds"] for turn in least)[1], "")
            for name in ("vicinal", "pandas", "pyarrow_float64", "pyarrow")]
    return [("Reading a CSV of 1 GB", "125 million numbers, 2 threads", rows, "s", str)]


def draw_bars(title, panels, theme, columns=3, left=128, bar=84):
    """panels: (title, note, rows as bars() takes them, unit, how a row's note reads)."""
    width = 320
    height = 48 + 22 * max(len(rows) for _, _, rows, _, _ in panels) + 22
    drawn = ""
    for i, (name, size, rows, unit, note) in enumerate(panels):
        x, y = width * (i % columns) + 4, height * (i // columns)
        drawn += heading(x, y, name, size, theme)
        drawn += bars(x, y + 42, left, bar, [(who, value, note(extra)) for who, value, extra in rows], theme, unit)
    return svg(width * min(columns, len(panels)), height * -(-len(panels) // columns) - 14, title, drawn)


# ---- pictures of answers ---------------------------------------------------------------------------------------------

def neighbors(vicinal):
    draw = random.Random(2)
    table = [(draw.gauss(0, 1), draw.gauss(0, 0.8)) for _ in range(110)]
    table += [(draw.gauss(4.2, 0.42), draw.gauss(0.4, 0.42)) for _ in range(70)]
    table += [(draw.uniform(-2, 6), draw.uniform(-2.2, 2.4)) for _ in range(40)]
    queries = [(-0.4, 0.3), (4.3, 0.5), (2.3, -1.3)]
    vicinal.write("table.csv", [("x", "y"), *table])
    vicinal.write("queries.csv", [("x", "y"), *queries])
    vicinal("knn", "table.csv", "queries.csv", "-k", 8, "-o", "knn.csv", "-q")
    vicinal("radius", "table.csv", "queries.csv", "-r", 0.7, "-o", "radius.csv", "-q")
    return table, queries, [[(int(row["row"]), int(row["id"]), float(row["distance"])) for row in vicinal.read(name)]
                            for name in ("knn.csv", "radius.csv")]


def draw_neighbors(data, theme):
    table, queries, answers = data
    drawn = ""
    titles = [("knn: the k nearest rows", "k = 8; the ball grows until it holds 8"),
              ("radius: all rows within r", "r = 0.7; a ball may hold many or none")]
    for i, (pairs, (title, note)) in enumerate(zip(answers, titles)):
        left = 4 + 480 * i
        at = Panel(table, left, 44, 464, 280)
        drawn += heading(left, 0, title, note, theme) + frame(left, 44, 464, 280, theme)
        drawn += dots([at(point) for point in table], theme["dot"], 4.5, 0.75)
        for q, query in enumerate(queries):
            colour = theme["classes"][q]
            mine = [(id, distance) for row, id, distance in pairs if row == q]
            radius = max(distance for _, distance in mine) if i == 0 else 0.7
            x, y = at(query)
            drawn += circle(x, y, radius * at.scale_x, colour, 1.5, colour, 0.12)
            drawn += lines([(x, y, *at(table[id])) for id, _ in mine], colour, 1, 0.6)
            drawn += dots([at(table[id]) for id, _ in mine], colour, 6)
            drawn += lines([(x - 5, y, x + 5, y), (x, y - 5, x, y + 5)], theme["text"], 2.2)
            drawn += text(x, y - radius * at.scale_x - 6, f"{len(mine)} rows", colour, 12, "600", "middle",
                          theme["paper"])
    return svg(956, 330, "Three queries with their 8 nearest rows, and with all rows within a radius", drawn)


def regions(vicinal):
    draw = random.Random(4)
    table, classes = [], []
    for _ in range(220):
        half, angle = draw.randrange(2), draw.uniform(0, math.pi)
        x, y = (math.cos(angle), math.sin(angle)) if half == 0 else (1 - math.cos(angle), 0.5 - math.sin(angle))
        table.append((x + draw.gauss(0, 0.27), y + draw.gauss(0, 0.27)))
        classes.append(half)
    left, right, low, high = -1.9, 2.9, -1.3, 1.8
    table, classes = zip(*[(p, c) for p, c in zip(table, classes) if left < p[0] < right and low < p[1] < high])
    columns, rows = 116, 60
    grid = [(left + (right - left) * (i + 0.5) / columns, low + (high - low) * (j + 0.5) / rows)
            for j in range(rows) for i in range(columns)]
    vicinal.write("table.csv", [("x", "y", "class"), *[(*p, c) for p, c in zip(table, classes)]])
    vicinal.write("grid.csv", [("x", "y"), *grid])
    answers = []
    for k in (1, 15):
        vicinal("classify", "table.csv", "grid.csv", "--label", "class", "-k", k, "-o", "labels.csv", "-q")
        answers.append((k, [row["label"] if "label" in row else row["class"] for row in vicinal.read("labels.csv")]))
    return table, classes, (left, right, low, high), (columns, rows), answers


def draw_regions(data, theme):
    table, classes, (left, right, low, high), (columns, rows), answers = data
    drawn = ""
    for panel, (k, labels) in enumerate(answers):
        x, width, height = 4 + 480 * panel, 464, 300
        note = "every stray row has an island" if k == 1 else "the border follows the classes"
        drawn += heading(x, 0, f"classify, k = {k}", note, theme)
        step_x, step_y = width / columns, height / rows
        for value in ("0", "1"):
            path = ""
            for j in range(rows):
                i = 0
                while i < columns:
                    start = i
                    while i < columns and labels[j * columns + i] == value:
                        i += 1
                    if i > start:
                        top = 44 + height - (j + 1) * step_y
                        length = (i - start) * step_x
                        path += (f"M{number(x + start * step_x)} {number(top)}h{number(length)}v{number(step_y)}"
                                 f"h{number(-length)}z")
                    i += 1
            drawn += (f'<path d="{path}" fill="{theme["classes"][int(value)]}" fill-opacity="0.2" '
                      'shape-rendering="crispEdges"/>\n')
        for value in (0, 1):
            points = [(x + (p[0] - left) / (right - left) * width, 44 + height - (p[1] - low) / (high - low) * height)
                      for p, c in zip(table, classes) if c == value]
            drawn += dots(points, theme["paper"], 7.5) + dots(points, theme["classes"][value], 5.5)
        drawn += frame(x, 44, width, height, theme)
    return svg(956, 350, "Decision regions of two classes for k = 1 and k = 15", drawn)


def clusters(vicinal):
    draw = random.Random(11)
    centers = [(0, 0), (3.4, 1.3), (1.2, 3.2), (5.6, 3.8), (4.6, -1.4)]
    table = [(draw.gauss(x, 0.62), draw.gauss(y, 0.62)) for x, y in centers for _ in range(110)]
    vicinal.write("table.csv", [("x", "y"), *table])
    vicinal("kmeans", "table.csv", "-c", 5, "--seed", 1, "-o", "clusters", "-q")
    labels, found = (((vicinal.folder / name).read_text().splitlines())
                     for name in ("clusters.membership", "clusters.cluster_centres"))
    labels = [int(line.split()[1]) for line in labels]
    found = [tuple(map(float, line.split()[1:])) for line in found]
    scan = json.loads(vicinal("kmeans", "table.csv", "--scan", "2..10", "--seed", 1, "--json"))["scan"]
    return table, labels, found, scan


def draw_clusters(data, theme):
    table, labels, found, scan = data
    drawn = heading(4, 0, "kmeans -c 5", "550 rows, their labels and the five centers", theme)
    drawn += frame(4, 44, 464, 320, theme)
    at = Panel(table, 4, 44, 464, 320)
    for label, points in sorted(groups_of(table, labels).items()):
        colour = theme["classes"][label]
        x, y = at(found[label])
        drawn += lines([(x, y, *at(point)) for point in points], colour, 0.7, 0.25)
        drawn += dots([at(point) for point in points], colour, 4.5)
    for point in found:
        x, y = at(point)
        drawn += circle(x, y, 6.5, theme["paper"], 2, theme["text"])
    drawn += heading(488, 0, "kmeans --scan 2..10", "one line for each number of clusters", theme)
    best = max(scan, key=lambda line: line["silhouette"])["clusters"]
    curves = (("silhouette", "silhouette: larger is better"), ("inertia", "inertia: falls with every cluster"))
    for i, (key, title) in enumerate(curves):
        top, height, left, width = 62 + 160 * i, 116, 508, 424
        most = max(line[key] for line in scan) * 1.08
        step = width / len(scan)
        drawn += text(left, top - 4, title, theme["soft"], 11)
        drawn += lines([(left, top + height, left + width, top + height)], theme["line"])
        points = [(left + step * (j + 0.5), top + height - height * line[key] / most) for j, line in enumerate(scan)]
        drawn += lines([(*a, *b) for a, b in zip(points, points[1:])], theme["ours"], 1.8)
        for (x, y), line in zip(points, scan):
            is_best = line["clusters"] == best
            drawn += circle(x, y, 5.5 if is_best else 3.2, theme["paper"], 1.2, theme["wrong" if is_best else "ours"])
            drawn += text(x, top + height + 15, str(line["clusters"]), theme["text"] if is_best else theme["soft"], 11,
                          "600" if is_best else "normal", "middle")
            if is_best:
                said = f"{line[key]:.2f}" if key == "silhouette" else f"{line[key]:,.0f}"
                drawn += text(x + 9, y - 7, said, theme["text"], 11, "600")
    return svg(956, 370, "Five clusters with their centers, and silhouette and inertia for 2 to 10 clusters", drawn)


def density(vicinal):
    draw = random.Random(12)
    table = []
    for i in range(160):
        angle = math.pi * i / 159
        table.append((math.cos(angle) + draw.gauss(0, 0.07), math.sin(angle) + draw.gauss(0, 0.07)))
        table.append((1 - math.cos(angle) + draw.gauss(0, 0.07), 0.4 - math.sin(angle) + draw.gauss(0, 0.07)))
    table += [(draw.gauss(3.2, 0.34), draw.gauss(0.3, 0.34)) for _ in range(90)]
    table += [(draw.uniform(-1.4, 4.4), draw.uniform(-1.2, 1.6)) for _ in range(40)]
    vicinal.write("table.csv", [("x", "y"), *table])
    labels = []
    for name, options in (("dbscan", ("--eps", 0.17)), ("hdbscan", ("--min-cluster-size", 20))):
        vicinal(name, "table.csv", *options, "-o", f"{name}.csv", "-q")
        labels.append([int(line.split(",")[1]) for line in (vicinal.folder / f"{name}.csv").read_text().split()[1:]])
    return table, labels


def draw_density(data, theme):
    table, labels = data
    drawn = ""
    titles = (("dbscan --eps 0.17", "one density: some rows of the sparse group are apart"),
              ("hdbscan --min-cluster-size 20", "clusters of different densities"))
    for i, (found, (title, note)) in enumerate(zip(labels, titles)):
        drawn += heading(4 + 484 * i, 0, title, note, theme)
        drawn += frame(4 + 484 * i, 44, 464, 280, theme)
        at = Panel(table, 4 + 484 * i, 44, 464, 280)
        for label, points in sorted(groups_of(table, found).items()):
            places = [at(point) for point in points]
            drawn += dots(places, theme["dot"], 3.5) if label < 0 else dots(places, theme["classes"][label % 8], 4.5)
    return svg(956, 330, "Clusters of dbscan and hdbscan; rows that are noise are small and gray", drawn)


def outliers(vicinal):
    draw = random.Random(8)
    table = [(draw.gauss(0, 0.24), draw.gauss(0, 0.24)) for _ in range(130)]
    table += [(draw.gauss(3.6, 0.95), draw.gauss(0.3, 0.95)) for _ in range(130)]
    table += [(0.75, 0.95), (-0.95, 0.55), (0.35, -1.15), (-0.6, -0.95), (0.9, -0.5)]  # near the dense cluster
    table += [(-1.6, 2.6)]  # far from everything
    vicinal.write("table.csv", [("x", "y"), *table])
    scores = {}
    for score in ("lof", "knn"):
        vicinal("lof", "table.csv", "-k", 15, "--score", score, "-o", "scores.csv", "-q")
        scores[score] = [float(next(value for name, value in row.items() if name not in ("row", "rank")))
                         for row in vicinal.read("scores.csv")]
    return table, scores


def draw_outliers(data, theme):
    table, scores = data
    drawn = ""
    notes = {"lof": ("lof: density compared with the neighbors'", "finds the strays of the dense cluster"),
             "knn": ("knn: distance to the 15th neighbor", "prefers the rim of the wide cluster")}
    for i, (name, values) in enumerate(scores.items()):
        left = 4 + 480 * i
        at = Panel(table, left, 44, 464, 320, 26)
        drawn += heading(left, 0, *notes[name], theme) + frame(left, 44, 464, 320, theme)
        ranked = sorted(range(len(table)), key=lambda row: -values[row])
        least = sorted(values)[len(values) // 2]
        most = values[ranked[0]]
        for row in ranked:
            radius = 20 * math.sqrt(max(0.0, values[row] - least) / (most - least))
            x, y = at(table[row])
            if radius > 3:
                drawn += circle(x, y, radius, theme["wrong"] if row in ranked[:6] else theme["other"], 1.2,
                                theme["wrong"] if row in ranked[:6] else "none", 0.15)
        drawn += dots([at(table[row]) for row in ranked[6:]], theme["dot"], 4)
        drawn += dots([at(table[row]) for row in ranked[:6]], theme["wrong"], 5.5)
        for place, row in enumerate(ranked[:6]):
            x, y = at(table[row])
            drawn += text(x + 7, y - 7, str(place + 1), theme["text"], 11, "600", halo=theme["paper"])
    return svg(956, 370, "Outlier scores of 266 rows: circles grow with the score, the six largest are numbered", drawn)


def embedding(vicinal):
    vicinal("generate", "swiss-roll", "-n", 2000, "--seed", 5, "-o", "roll.csv", "--parameters", "truth.csv", "-q")
    roll, truth = vicinal.points("roll.csv"), vicinal.points("truth.csv")
    plans = []
    for variant in ("standard", "modified"):
        vicinal("lle", "roll.csv", "-k", 12, "--variant", variant, "-o", "plane.csv", "-q")
        plans.append((variant, [(float(row["y0"]), float(row["y1"])) for row in vicinal.read("plane.csv")][:1000]))
    return roll[:1000], [row[0] for row in truth][:1000], plans


def draw_embedding(data, theme):
    roll, angle, plans = data
    least, most, shades = min(angle), max(angle), 14
    shade = [min(shades - 1, int(shades * (a - least) / (most - least))) for a in angle]
    colours = []
    for i in range(shades):
        at = i / (shades - 1) * (len(theme["ramp"]) - 1)
        low = min(int(at), len(theme["ramp"]) - 2)
        pair = [[int(theme["ramp"][j][c:c + 2], 16) for c in (1, 3, 5)] for j in (low, low + 1)]
        colours.append("#" + "".join(f"{round(a + (b - a) * (at - low)):02x}" for a, b in zip(*pair)))
    seen = [(x + 0.42 * y, z + 0.22 * y) for x, y, z in roll]  # nearly along the roll's axis
    titles = [("the table: a Swiss roll", "2,000 rows of 3 columns; color: the angle")]
    titles += [(f"lle --variant {variant}", note) for (variant, _), note in
               zip(plans, ("unrolled, but bent and narrowed", "unrolled to a rectangle"))]
    drawn = ""
    for i, points in enumerate([seen] + [plan for _, plan in plans]):
        left = 4 + 320 * i
        at = Panel(points, left, 44, 304, 260, 16, stretched=i > 0)
        drawn += heading(left, 0, *titles[i], theme) + frame(left, 44, 304, 260, theme)
        for level, members in sorted(groups_of(points, shade).items()):
            drawn += dots([at(point) for point in members], colours[level], 4.2)
    return svg(956, 310, "A Swiss roll and its embeddings by two variants", drawn)


def coclusters(vicinal):
    edges = [("a1", "b1", 1.0), ("a2", "b2", 0.6), ("a2", "b3", 0.4), ("a3", "b4", 0.9), ("a4", "b4", 0.8),
             ("a5", "b5", 0.7), ("a5", "b6", 0.5), ("a6", "b5", 0.4), ("a6", "b6", 0.6), ("a6", "b7", 0.05),
             ("a7", "b7", 0.8),
             ("a7", "b8", 0.6), ("a8", "b7", 0.3), ("a8", "b8", 0.7), ("a9", "b9", 1.0)]
    vicinal.write("edges.csv", [("a", "b", "weight"), *edges])
    found = []
    for words in ((), ("--split-members", 5)):
        vicinal("cocluster", "edges.csv", *words, "-o", "groups.csv", "-q")
        found.append({(row["side"], row["id"]): int(row["group"]) for row in vicinal.read("groups.csv")})
    return edges, found


def draw_coclusters(data, theme):
    edges, found = data
    drawn = ""
    titles = [("cocluster", "one color for each connected component"),
              ("cocluster --split-members 5", "the large group is cut at its weakest edge")]
    for i, (groups, (title, note)) in enumerate(zip(found, titles)):
        left = 4 + 480 * i
        drawn += heading(left, 0, title, note, theme) + frame(left, 44, 464, 200, theme)

        def at(member):
            return left + 32 + 50 * (int(member[1:]) - 1), 92 if member[0] == "a" else 196

        for a, b, weight in edges:
            cut = groups[("a", a)] != groups[("b", b)]
            colour = theme["soft"] if cut else theme["classes"][groups[("a", a)] % 8]
            (x, y), (z, w) = at(a), at(b)
            drawn += (f'<path d="M{x} {y}L{z} {w}" stroke="{colour}" stroke-width="{1.2 + 3 * weight:.1f}"'
                      f'{" stroke-dasharray=%s3 4%s" % (chr(34), chr(34)) if cut else ""}/>\n')
        for (side, member), group in sorted(groups.items()):
            x, y = at(member)
            drawn += circle(x, y, 12, theme["paper"], 2, theme["classes"][group % 8])
            drawn += text(x, y + 4, member, theme["paper"], 10, "600", "middle")
    return svg(956, 250, "A bipartite graph, its groups, and the groups after the largest one was split", drawn)


def matching(vicinal):
    def ring(x, y, width, height):
        return [[x, y], [x + width, y], [x + width, y + height], [x, y + height], [x, y]]

    old = [ring(0, 0, 4, 3), ring(4, 0, 3, 3), ring(7, 0, 4, 3), ring(0, 3, 3, 3), ring(3, 3, 3, 3), ring(6, 3, 5, 3)]
    new = [ring(0.1, 0, 4, 2.95), ring(4.1, 0, 2.9, 1.5), ring(4.1, 1.5, 2.9, 1.5), ring(7, 0, 4, 3),
           ring(0, 2.95, 6.05, 3), ring(6.05, 3.05, 3, 2.9), ring(11.3, 0.6, 1.6, 2)]
    for name, rings in (("old", old), ("new", new)):
        features = [{"type": "Feature", "properties": {"ID": f"{name[0]}{i + 1}"},
                     "geometry": {"type": "Polygon", "coordinates": [[[x / 1000, y / 1000] for x, y in ring]]}}
                    for i, ring in enumerate(rings)]
        (vicinal.folder / f"{name}.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    vicinal("match", "old.geojson", "new.geojson", "--id", "ID", "-o", "pairs.csv", "-q")
    kept = [(row["a_id"], row["b_id"], float(row["iou"])) for row in vicinal.read("pairs.csv") if row["kept"] == "1"]
    return old, new, kept


def draw_matching(data, theme):
    old, new, kept = data
    parent = {f"{side}{i + 1}": f"{side}{i + 1}" for side, rings in (("o", old), ("n", new)) for i in range(len(rings))}

    def root(member):
        return member if parent[member] == member else root(parent[member])

    for a, b, _ in kept:
        parent[root(b)] = root(a)
    sides = {}
    for member in parent:
        counts = sides.setdefault(root(member), [0, 0])
        counts[member[0] == "n"] += 1
    order = {group: i for i, group in enumerate(sides)}
    unchanged = {root(a) for a, _, iou in kept if iou >= 0.98}
    words = {(1, 1): "modified", (1, 2): "split", (2, 1): "merged", (1, 0): "removed", (0, 1): "created"}
    drawn = ""
    everything = [tuple(point) for ring in old + new for point in ring]
    maps = ((old, "o", "OLD", "six features"), (new, "n", "NEW", "seven features; the color is the group"))
    for i, (rings, side, title, note) in enumerate(maps):
        left = 4 + 480 * i
        at = Panel(everything, left, 44, 464, 230, 12)
        drawn += heading(left, 0, title, note, theme) + frame(left, 44, 464, 230, theme)
        for j, ring in enumerate(rings):
            member = f"{side}{j + 1}"
            group = root(member)
            colour = theme["classes"][order[group] % 8]
            path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in map(at, ring[:-1])) + "z"
            drawn += (f'<path d="{path}" fill="{colour}" fill-opacity="0.28" stroke="{theme["text"]}" '
                      'stroke-width="1.3"/>\n')
            x, y = at((sum(p[0] for p in ring[:4]) / 4, sum(p[1] for p in ring[:4]) / 4))
            drawn += text(x, y - 2, member, theme["text"], 12, "600", "middle")
            word = "unchanged" if group in unchanged else words[tuple(sides[group])]
            drawn += text(x, y + 12, word, theme["soft"], 11, "normal", "middle")
    return svg(956, 280, "Two maps, the groups of corresponding features, and what changed", drawn)


def both(title, data, **options):
    return data, lambda panels, theme: draw_bars(title, panels, theme, **options)


PICTURES = {
    "speed": both("Seconds of exact neighbor searches, and wrong answers, of vicinal and other libraries", speed),
    "device": both("Milliseconds of searches on an H200, and wrong answers, of vicinal and other libraries", device,
                   bar=70, left=104),
    "kmeans-speed": both("Milliseconds of an iteration of k-means, vicinal and scikit-learn", kmeans_speed),
    "read-csv": both("Seconds to read a CSV file of 1 GB, vicinal, pandas and pyarrow", read_csv, bar=120),
    "neighbors": (neighbors, draw_neighbors),
    "regions": (regions, draw_regions),
    "clusters": (clusters, draw_clusters),
    "density": (density, draw_density),
    "outliers": (outliers, draw_outliers),
    "embedding": (embedding, draw_embedding),
    "coclusters": (coclusters, draw_coclusters),
    "matching": (matching, draw_matching),
    **diagrams.PICTURES,
    **example_figures.PICTURES,
}


# ---- the files -------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def same(old, new):
    """Equal but for numbers that differ by 0.15 at most."""
    if old == new:
        return True
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    return all(abs(float(a) - float(b)) <= 0.15 + 1e-9 for a, b in zip(NUMBER.findall(old), NUMBER.findall(new)))


def self_check():
    assert same("M1 2.1h0", "M1 2.2h0") and not same("M1 2h0", "M1 3h0") and not same("M1 2", "L1 2")


def main():
    self_check()
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--command", type=pathlib.Path, help="the program vicinal [that of build/release or build/dev]")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    built = [ROOT / f"build/{preset}/cli/vicinal" for preset in ("release", "dev")]
    command = next((path.resolve() for path in [arguments.command, *built] if path and path.exists()), None)
    stale, skipped = [], []
    for name in arguments.names or PICTURES:
        collect, draw = PICTURES[name]
        with tempfile.TemporaryDirectory() as folder:
            try:
                data = collect(Command(command, pathlib.Path(folder)))
            except Skipped as reason:
                skipped.append(f"{name} ({reason})")
                continue
        for theme, colours in THEMES.items():
            path = FIGURES / f"{name}-{theme}.svg"
            drawn = draw(data, colours)
            assert len(drawn) < 60000, f"{path.name}: {len(drawn)} bytes"
            if not path.exists() or not same(path.read_text(), drawn):
                stale.append(path.name)
                if not arguments.check:
                    path.write_text(drawn)
    if arguments.check and stale:
        sys.exit(f"docs/figures/{', '.join(stale)}: out of date; run bench/figures.py")
    print(f"{len(PICTURES)} pictures, {len(stale)} files drawn anew"
          + (f"; skipped: {', '.join(skipped)}" if skipped else ""))


if __name__ == "__main__":
    main()

"""The pictures of docs/examples, from the data and with the options of the examples. figures.py draws and compares
them. Those of Fashion-MNIST need the Debian package dataset-fashion-mnist, the others scikit-learn."""

import gzip
import json
import pathlib

from drawing import Panel, Skipped, circle, dots, frame, heading, lines, number, svg, text

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
NAMES = "t-shirt trouser pullover dress coat sandal shirt sneaker bag boot".split()


def data_set(name):
    """A data set of scikit-learn as lists: its rows, the codes of its classes and their names."""
    try:
        from sklearn import datasets
    except ImportError:
        raise Skipped("there is no scikit-learn") from None
    options = {"scaled": False} if name == "diabetes" else {}
    data = getattr(datasets, f"load_{name}")(**options)
    return data.data.tolist(), data.target.tolist(), [str(one) for one in getattr(data, "target_names", ())]


def square(x, y, size, colour, opacity):
    return (f'<rect x="{number(x)}" y="{number(y)}" width="{size}" height="{size}" fill="{colour}" '
            f'fill-opacity="{opacity:.2f}"/>\n')


def images(placed, size, colour, levels=16):
    """Images of 8 x 8 numbers from 0 to 16, each (values, x, y), of pixels of one size: a path for each level."""
    paths = {}
    for values, left, top in placed:
        for i, value in enumerate(values):
            level = round(value / 16 * levels)
            if level:
                x, y = left + size * (i % 8), top + size * (i // 8)
                paths.setdefault(level, []).append(f"M{number(x)} {number(y)}h{size}")
    return "".join(f'<path d="{"".join(path)}" stroke="{colour}" stroke-width="{size}" '
                   f'stroke-opacity="{level / levels:.2f}"/>\n' for level, path in sorted(paths.items()))


def axes(at, theme, xs, ys, corner):
    """Ticks below and to the left of a panel whose lower left corner is given."""
    left, bottom = corner
    drawn = ""
    for value in xs:
        drawn += text(at((value, ys[0]))[0], bottom + 16, f"{value:g}", theme["soft"], 11, anchor="middle")
    for value in ys:
        drawn += text(left - 6, at((xs[0], value))[1] + 4, f"{value:g}", theme["soft"], 11, anchor="end")
    return drawn


# ---- classes ---------------------------------------------------------------------------------------------------------

def fashion_mnist(vicinal):
    if not FASHION.exists():
        raise Skipped("the package dataset-fashion-mnist is missing")
    files = {name: FASHION / f"{name}-ubyte.gz" for name in ("train-images-idx3", "train-labels-idx1")}
    with gzip.open(FASHION / "t10k-images-idx3-ubyte.gz") as file:
        header, pixels = file.read(16), file.read(500 * 784)
    (vicinal.folder / "images.idx").write_bytes(header[:4] + (500).to_bytes(4, "big") + header[8:] + pixels)
    with gzip.open(FASHION / "t10k-labels-idx1-ubyte.gz") as file:
        truth = list(file.read(8 + 500)[8:])
    vicinal("classify", files["train-images-idx3"], "images.idx", "--labels", files["train-labels-idx1"], "-k", 5,
            "-o", "answers.csv", "-q")
    counts = [[0] * 10 for _ in range(10)]
    for row in vicinal.read("answers.csv"):
        counts[truth[int(row["row"])]][int(row["label"])] += 1
    return counts


def draw_fashion_mnist(counts, theme):
    drawn = heading(4, 0, "500 images by 5 neighbors", "a row for each class, a column for each answer", theme)
    side, left, top = 44, 84, 64
    for i, name in enumerate(NAMES):
        drawn += text(left - 8, top + side * i + 26, name, theme["text"], 11, anchor="end")
        drawn += text(left + side * i + 21, top - 8, name, theme["text"], 9, anchor="middle")
        for j, count in enumerate(counts[i]):
            share = count / sum(counts[i])
            x, y = left + side * j, top + side * i
            if count:
                drawn += square(x, y, side - 2, theme["ours" if i == j else "wrong"], 0.12 + 0.6 * share)
                drawn += text(x + 21, y + 26, str(count), theme["text"], 12, "600" if i == j else "normal", "middle")
            else:
                drawn += square(x, y, side - 2, theme["line"], 0.25)
    return svg(540, 510, "How many of 500 images of each class were given which class", drawn)


def draw_curve(points, at, colour, width=1.8):
    places = [at(point) for point in points]
    return lines([(*a, *b) for a, b in zip(places, places[1:])], colour, width)


def diabetes(vicinal):
    rows, target, _ = data_set("diabetes")
    names = [*(f"c{i}" for i in range(10)), "progression"]
    table = [[*row, value] for row, value in zip(rows, target)]
    vicinal.write("train.csv", [names, *table[:332]])
    vicinal.write("test.csv", [names, *table[332:]])
    words = ("--target", "progression", "--scale", "standard", "-k")
    vicinal("regress", "train.csv", "test.csv", *words, 35, "-o", "predicted.csv", "-q")
    scores = json.loads(vicinal("regress", "train.csv", *words, "1..40", "--cv", 5, "--json"))["cross_validation"]
    predicted = [float(row["progression"]) for row in vicinal.read("predicted.csv")]
    return list(zip(target[332:], predicted)), scores["scores"]


def draw_diabetes(data, theme):
    points, scores = data
    drawn = heading(44, 0, "regress -k 35", "110 patients: true progression, and predicted above it", theme)
    at = Panel([(0, 0), (360, 360)], 44, 44, 300, 300, 6)
    drawn += frame(44, 44, 300, 300, theme) + axes(at, theme, range(0, 400, 100), range(0, 400, 100), (44, 344))
    drawn += lines([(*at((0, 0)), *at((360, 360)))], theme["line"]) + dots([at(p) for p in points], theme["ours"], 5)
    curve = list(enumerate(scores, 1))
    drawn += heading(420, 0, "regress -k 1..40 --cv 5", "mean squared error of five folds by k", theme)
    at = Panel([(0, 3000), (41, 6500)], 420, 44, 400, 300, 6, True)
    drawn += frame(420, 44, 400, 300, theme) + axes(at, theme, range(0, 50, 10), range(3000, 7000, 1000), (420, 344))
    drawn += draw_curve(curve, at, theme["ours"])
    k, least = min(curve, key=lambda point: point[1])
    x, y = at((k, least))
    drawn += circle(x, y, 5, theme["paper"], 1.2, theme["wrong"])
    drawn += text(x, y - 12, f"k = {k}", theme["text"], 12, "600", "middle")
    return svg(830, 366, "Predicted and true progression of 110 patients, and cross-validation by k", drawn)


# ---- graphs ----------------------------------------------------------------------------------------------------------

def digits_clusters(vicinal):
    rows, _, _ = data_set("digits")
    vicinal.write("digits.csv", rows)
    vicinal("knn", "digits.csv", "--no-header", "-k", 10, "--include-self", "-o", "graph.csv", "-q")
    lists = {}
    for row in vicinal.read("graph.csv"):
        lists.setdefault(int(row["row"]), []).append(int(row["id"]))
    return [[rows[other] for other in lists[row]] for row in (7, 21, 38, 54, 59, 69)]


def draw_digits_clusters(data, theme):
    drawn = heading(4, 0, "knn -k 10 --include-self", "six images, each with its nine nearest to the right", theme)
    placed = [(values, 8 + 52 * j + 24 * (j > 0), 50 + 52 * i)
              for i, row in enumerate(data) for j, values in enumerate(row)]
    return svg(560, 360, "Six images of digits and their nearest images", drawn + images(placed, 5, theme["text"]))


def digits_coclusters(vicinal):
    rows, truth, _ = data_set("digits")
    vicinal.write("digits.csv", rows)
    vicinal("kmeans", "digits.csv", "--no-header", "-c", 15, "--runs", 10, "--seed", 1, "-o", "clusters", "-q")
    labels, centers = (((vicinal.folder / f"clusters.{name}").read_text().splitlines())
                       for name in ("membership", "cluster_centres"))
    labels = [int(line.split()[1]) for line in labels]
    edges = []
    for digit in range(10):
        for cluster in range(15):
            both = sum(a == digit and b == cluster for a, b in zip(truth, labels))
            if both:
                edges.append((str(digit), f"c{cluster}", both / min(truth.count(digit), labels.count(cluster))))
    vicinal.write("pairs.csv", [("digit", "cluster", "share"), *((a, b, f"{share:.3f}") for a, b, share in edges)])
    vicinal("cocluster", "pairs.csv", "--above", 0.2, "-o", "groups.csv", "-q")
    groups = {row["id"]: int(row["group"]) for row in vicinal.read("groups.csv")}
    return edges, groups, [[float(value) for value in line.split()[1:]] for line in centers]


def draw_digits_coclusters(data, theme):
    edges, groups, centers = data
    drawn = heading(4, 0, "cocluster --above 0.2", "ten digits, 15 clusters of k-means, and their centers", theme)
    drawn += frame(4, 44, 872, 250, theme)
    at = {}
    for members, step, y in (([str(i) for i in range(10)], 84, 76), ([f"c{i}" for i in range(15)], 57, 206)):
        for i, member in enumerate(sorted(members, key=lambda one: (groups[one], int(one.strip("c"))))):
            at[member] = 440 + step * (i - (len(members) - 1) / 2), y
    for a, b, share in sorted(edges, key=lambda edge: edge[2]):
        kept = round(share, 3) > 0.2
        if share >= 0.03:
            dash = "" if kept else ' stroke-dasharray="3 4"'
            (x, y), (z, w) = at[a], at[b]
            drawn += (f'<path d="M{number(x)} {y}L{number(z)} {w}" stroke="'
                      f'{theme["classes"][groups[a] % 8] if kept else theme["other"]}" '
                      f'stroke-width="{0.8 + 4 * share:.1f}"{dash}/>\n')
    for member, (x, y) in at.items():
        drawn += circle(x, y, 13, theme["paper"], 2, theme["classes"][groups[member] % 8])
        drawn += text(x, y + 4, member, theme["paper"], 11, "600", "middle")
    placed = [(values, at[f"c{i}"][0] - 20, 240) for i, values in enumerate(centers)]
    drawn += images(placed, 5, theme["text"], 8)
    return svg(880, 300, "Digits, clusters of k-means, and the pairs between them", drawn)


# ---- outliers --------------------------------------------------------------------------------------------------------

def breast_cancer(vicinal):
    rows, codes, _ = data_set("breast_cancer")
    malignant = [i for i, code in enumerate(codes) if code == 0][:10]
    kept = [i for i, code in enumerate(codes) if code == 1 or i in malignant]
    vicinal.write("samples.csv", [rows[i] for i in kept])
    truth = [codes[i] == 0 for i in kept]
    curves = {}
    for score in ("lof", "knn"):
        vicinal("lof", "samples.csv", "--no-header", "--scale", "standard", "-k", 20, "--score", score, "--top", 0,
                "-o", "scores.csv", "-q")
        values = [float(row[score]) for row in vicinal.read("scores.csv")]
        curve, found, wrong = [(0.0, 0.0)], 0, 0
        for i in sorted(range(len(values)), key=lambda i: -values[i]):
            found, wrong = found + truth[i], wrong + (not truth[i])
            curve.append((wrong / 357, found / 10))
        curves[score] = [p for i, p in enumerate(curve) if i == 0 or i + 1 == len(curve) or p[1] != curve[i - 1][1] or
                         curve[i + 1][1] != p[1]]
    return curves


def draw_breast_cancer(curves, theme):
    drawn = heading(44, 0, "ROC curves", "found malignant samples by the share of benign ones ranked before", theme)
    at = Panel([(0, 0), (1, 1)], 44, 44, 360, 300, 8, True)
    drawn += frame(44, 44, 360, 300, theme) + axes(at, theme, (0, 0.5, 1), (0, 0.5, 1), (44, 344))
    drawn += lines([(*at((0, 0)), *at((1, 1)))], theme["line"])
    for i, (name, curve) in enumerate(curves.items()):
        drawn += draw_curve(curve, at, theme["classes"][i], 2.2)
        drawn += text(392, 300 + 18 * i, name, theme["classes"][i], 13, "600", "end")
    return svg(470, 366, "ROC curves of two outlier scores", drawn)


def wine(vicinal):
    rows, grapes, _ = data_set("wine")
    usual = [i for i, grape in enumerate(grapes) if grape == 0 and i % 5]
    new = [i for i in range(len(rows)) if i not in set(usual)]
    vicinal.write("usual.csv", [rows[i] for i in usual])
    vicinal.write("new.csv", [rows[i] for i in new])
    words = ("--scale", "standard", "-k", 10, "--contamination", 0.1, "--top", 0)
    vicinal("lof", "usual.csv", "--no-header", *words, "-o", "usual_scores.csv", "-q")
    threshold = json.loads(vicinal("lof", "usual.csv", "--no-header", *words, "--json"))["threshold"]
    vicinal("lof", "usual.csv", "new.csv", "--no-header", *words, "-o", "scores.csv", "-q")
    return [(float(row["lof"]), grapes[i]) for i, row in zip(new, vicinal.read("scores.csv"))], threshold


def draw_wine(data, theme):
    scores, threshold = data
    drawn = heading(4, 0, "lof --model wine.vlof -", "new wines by their scores, a line for each grape", theme)
    at = Panel([(0.8, 0), (3, 2)], 70, 44, 640, 150, 16, True)
    drawn += frame(70, 44, 640, 150, theme)
    x = at((threshold, 0))[0]
    drawn += lines([(x, 44, x, 194)], theme["text"], 1.2)
    drawn += text(x + 4, 188, f"threshold {threshold:.2f}", theme["text"], 11)
    for grape in range(3):
        y = at((1, 2 - grape))[1]
        drawn += text(62, y + 4, f"grape {grape}", theme["text"], 12, anchor="end")
        for above in (False, True):
            placed = [(at((score, 0))[0], y) for score, its in scores if its == grape and (score > threshold) == above]
            drawn += dots(placed, theme["wrong" if above else "ours"], 6)
    for value in range(1, 4):
        drawn += text(at((value, 0))[0], 210, str(value), theme["soft"], 11, anchor="middle")
    return svg(720, 216, "Scores of new wines of three grapes, and the threshold of the model", drawn)


# ---- clusters and gaps -----------------------------------------------------------------------------------------------

def iris(vicinal):
    rows, species, _ = data_set("iris")
    vicinal.write("iris.csv", rows)
    vicinal("kmeans", "iris.csv", "--no-header", "-c", 3, "--runs", 10, "-o", "clusters.csv", "-q")
    labels = [int(row["label"]) for row in vicinal.read("clusters.csv")]
    return rows, species, labels


def draw_iris(data, theme):
    rows, species, labels = data
    note = "150 flowers by length and width of their petals, in cm; ringed: another species"
    drawn = heading(44, 0, "kmeans -c 3", note, theme)
    at = Panel([(0.8, 0), (7, 2.6)], 44, 44, 560, 300, 6, True)
    drawn += frame(44, 44, 560, 300, theme) + axes(at, theme, range(1, 8), (0, 1, 2), (44, 344))
    for cluster in range(3):
        its = [i for i, label in enumerate(labels) if label == cluster]
        kinds = [species[i] for i in its]
        usual = max(set(kinds), key=kinds.count)
        colour = theme["classes"][cluster]
        drawn += dots([at(rows[i][2:]) for i in its], colour, 6)
        for i in its:
            if species[i] != usual:
                drawn += circle(*at(rows[i][2:]), 6, theme["text"], 1.2)
        name, place = (("setosa", (2.5, 0.3)), ("versicolor", (3.4, 1.5)), ("virginica", (6.3, 1.45)))[usual]
        drawn += text(*at(place), name, colour, 13, "600", "middle")
    return svg(612, 366, "Flowers by their petals in the color of their cluster", drawn)


def missing_values(vicinal):
    rows, _, _ = data_set("breast_cancer")
    import numpy as np
    values = np.array(rows)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    curves = {"mean": [], "median": [], "knn": []}
    for share in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        lost = np.random.default_rng(4).random(values.shape) < share
        np.save(vicinal.folder / "gaps.npy", np.where(lost, np.nan, values))
        for method, curve in curves.items():
            vicinal("impute", "gaps.npy", "--method", method, "-o", "filled.npy", "-q")
            error = (np.load(vicinal.folder / "filled.npy") - values)[lost]
            curve.append((100 * share, float(np.sqrt((error**2).mean()))))
    return curves


def draw_missing_values(curves, theme):
    drawn = heading(44, 0, "impute --method", "error of filled values in deviations, by percentage lost", theme)
    at = Panel([(0, 0), (52, 1.2)], 44, 44, 420, 260, 6, True)
    drawn += frame(44, 44, 420, 260, theme) + axes(at, theme, range(0, 60, 10), (0, 0.5, 1), (44, 304))
    for i, (name, curve) in enumerate(curves.items()):
        drawn += draw_curve(curve, at, theme["classes"][i], 2) + dots([at(p) for p in curve], theme["classes"][i], 6)
        x, y = at(curve[2])
        drawn += text(x, y + (18 if name == "mean" else -8), name, theme["classes"][i], 12, "600", "middle")
    return svg(480, 326, "Error of filled values by the share of values that are missing", drawn)


PICTURES = {
    "example-fashion-mnist": (fashion_mnist, draw_fashion_mnist),
    "example-diabetes": (diabetes, draw_diabetes),
    "example-digits-clusters": (digits_clusters, draw_digits_clusters),
    "example-digits-coclusters": (digits_coclusters, draw_digits_coclusters),
    "example-breast-cancer": (breast_cancer, draw_breast_cancer),
    "example-wine": (wine, draw_wine),
    "example-iris": (iris, draw_iris),
    "example-missing-values": (missing_values, draw_missing_values),
}

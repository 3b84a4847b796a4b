"""Data that screens find hard, on the device: what survives the screen, what is certified, what goes down the ladder.

    python3 bench/gpu/data_sets.py FOLDER [-o FILE.json] [--commit C] [--data FOLDER] [SET...]

Each set is searched by method fused, and by automatic where that takes another method; 10,000 queries drawn like the
rows unless said. Answers to 200 random queries are held against float64 distances of all rows (torch) and, ids and bits
of the distances, against method direct. --data names a folder with kdd.npz and Fashion-MNIST's files
(bench/data/gpu.py writes it); without them these sets are left out. --scale divides the numbers of rows and queries.
"""

import gzip
import os

import numpy
import torch

import library
import measure

QUERIES = 10_000
WIDTH = 41  # columns where nothing else is said


def gaussian(n, d=WIDTH):
    return lambda draw: (draw.normal(n, d), draw.normal(QUERIES, d))


def clusters(count, sigma, n, d=WIDTH):
    """Rows about `count` centers that are uniform in the unit cube."""
    def made(draw):
        centers = draw.uniform(count, d)
        return tuple(centers[draw.below(count, rows)] + sigma * draw.normal(rows, d) for rows in (n, QUERIES))
    return made


def scaled(n, scales):
    """Normal columns times `scales(d)`."""
    def made(draw):
        factors = scales(WIDTH).to(draw.device)
        return draw.normal(n, WIDTH) * factors, draw.normal(QUERIES, WIDTH) * factors
    return made


def one_column(d):
    factors = torch.ones(d)
    factors[0] = 1e4
    return factors


def offset(n, by):
    return lambda draw: (draw.normal(n, WIDTH) + by, draw.normal(QUERIES, WIDTH) + by)


def outliers(n, count, factor):
    def made(draw):
        table, queries = draw.normal(n, WIDTH), draw.normal(QUERIES, WIDTH)
        table[draw.below(n, count)] *= factor
        return table, queries
    return made


def far_queries(n, factor):
    return lambda draw: (draw.normal(n, WIDTH), factor * draw.normal(QUERIES, WIDTH))


def duplicates(n, copies):
    """Every row `copies` times, in no order; half of the queries are rows of the table."""
    def made(draw):
        distinct = draw.normal(max(1, n // copies), WIDTH)
        table = distinct[draw.below(len(distinct), n)]
        return table, torch.cat([table[draw.below(n, QUERIES // 2)], draw.normal(QUERIES - QUERIES // 2, WIDTH)])
    return made


def swiss_roll(n):
    def made(draw):
        def rows(count):
            t = 1.5 * torch.pi * (1 + 2 * draw.uniform(count, 1))
            return torch.cat([t * torch.cos(t), 21 * draw.uniform(count, 1), t * torch.sin(t)], 1)
        return rows(n), rows(QUERIES)
    return made


def moons(n):
    """Two half circles in the plane with little noise: at a million rows squared distances are far below 1e-3."""
    def made(draw):
        def rows(count):
            t = torch.pi * draw.uniform(count, 1)
            outer = draw.uniform(count, 1) < 0.5
            x = torch.where(outer, torch.cos(t), 1 - torch.cos(t))
            y = torch.where(outer, torch.sin(t), 0.5 - torch.sin(t))
            return torch.cat([x, y], 1) + 0.05 * draw.normal(count, 2)
        return rows(n), rows(QUERIES)
    return made


# name: (k, rows and queries from a source of draws)
SETS = {
    **{f"gaussian, d {d}": (32, gaussian(1_000_000, d)) for d in (16, 41, 128, 512)},
    "10 clusters, sigma .05": (32, clusters(10, 0.05, 500_000)),
    "10 clusters, sigma .01": (32, clusters(10, 0.01, 500_000)),
    "10 clusters, sigma 1e-4": (20, clusters(10, 1e-4, 500_000)),
    "16 clusters of 1e-3": (20, clusters(16, 1e-3, 100_000)),
    "1000 clusters of 1e-3": (20, clusters(1000, 1e-3, 500_000)),
    "column deviations 1e-3 to 1e3": (20, scaled(100_000, lambda d: torch.logspace(-3, 3, d))),
    "one column x 1e4": (20, scaled(100_000, one_column)),
    "offset 1e6": (20, offset(100_000, 1e6)),
    "10 outlier rows x 1e4": (20, outliers(100_000, 10, 1e4)),
    "queries 1000 times farther out": (20, far_queries(100_000, 1e3)),
    "duplicates by the thousand": (20, duplicates(500_000, 1000)),
    "Swiss roll": (12, swiss_roll(1_000_000)),
    "two moons": (10, moons(1_000_000)),
}


class Draw:
    """Random rows on one device."""

    def __init__(self, device, seed):
        self.device = device
        self.source = torch.Generator(device).manual_seed(seed)

    def normal(self, n, d):
        return torch.randn((n, d), generator=self.source, device=self.device)

    def uniform(self, n, d):
        return torch.rand((n, d), generator=self.source, device=self.device)

    def below(self, limit, count):
        return torch.randint(limit, (count,), generator=self.source, device=self.device)


def read_sets(folder, device):
    """Real data: name: (k, rows and queries), of what the folder has."""
    found = {}
    kdd = os.path.join(folder, "kdd.npz")
    if os.path.exists(kdd):
        def kdd_rows(draw):
            with numpy.load(kdd) as arrays:
                return tuple(torch.tensor(arrays[part], device=device) for part in ("table", "queries"))
        found["KDD Cup 99"] = (20, kdd_rows)

    def images(part):
        with gzip.open(os.path.join(folder, part + "-images-idx3-ubyte.gz")) as file:
            raw = file.read()
        return torch.tensor(numpy.frombuffer(raw, numpy.uint8, offset=16).reshape(-1, 784), device=device)
    if os.path.exists(os.path.join(folder, "train-images-idx3-ubyte.gz")):
        found["Fashion-MNIST, bytes"] = (20, lambda draw: (images("train"), images("t10k")))
        found["Fashion-MNIST, float32"] = (20, lambda draw: (images("train").float(), images("t10k").float()))
    return found


def same_as_direct(ours, table, queries, k, truth, method):
    """How many of the sampled queries have the ids and the bits of method direct."""
    asked = queries[truth.sample].contiguous()
    answers = []
    for one in (method, "direct"):
        ids, distances = measure.lists(len(asked), k, table.device)
        ours.knn_into(table, asked, k, ids, distances, one)
        answers.append((ids, distances))
    (ids, distances), (true_ids, true_distances) = answers
    return int(((ids == true_ids) & (distances == true_distances)).all(1).sum())


def run_set(report, ours, name, k, make, options):
    entry = report.entry("sets", name)
    results = entry.setdefault("results", {})
    if "fused" in results and "automatic" in results:
        return
    print(name, flush=True)
    table, queries = (rows.contiguous() for rows in make(Draw(options.device, report.data["seed"])))
    if options.scale > 1:
        table, queries = table[: len(table) // options.scale].clone(), queries[: len(queries) // options.scale].clone()
    entry.update(rows=len(table), queries=len(queries), cols=table.shape[1], k=k,
                 dtype=str(table.dtype).removeprefix("torch."))
    truth = measure.Truth(table, queries, k)

    def measured(method):
        found = measure.measure_ours(ours, table, queries, k, truth, report.data["machine"], method, seconds=10)
        found["same_as_direct"] = same_as_direct(ours, table, queries, k, truth, method)
        return found

    def automatic():
        ids, distances = measure.lists(len(queries), k, table.device)
        ours.knn_into(table, queries, k, ids, distances)
        # What it took, if that is fused, has been measured.
        return measured("automatic") if ours.done.method != b"fused" else {"method": "fused"}

    for method, work in (("fused", lambda: measured("fused")), ("automatic", automatic)):
        if report.attempt(results, method, work) and "median_ms" in results[method]:
            measure.line(method, results[method])
            print(f"    {results[method]['same_as_direct']} of {len(truth.sample)} as method direct has them")


def main():
    parser = measure.arguments(__doc__)
    parser.add_argument("--data", help="folder with real data")
    parser.add_argument("--scale", type=int, default=1, help="divides the numbers of rows and queries")
    options = parser.parse_intermixed_args()
    measure.begin()
    report = measure.Report(options.output, measure.about(options, "hard data, device-resident"))
    ours = library.Vicinal(options.folder, options.device)
    sets = {**SETS, **(read_sets(options.data, options.device) if options.data else {})}
    for name in options.names or sets:
        measure.empty_cache()
        run_set(report, ours, name, *sets[name], options)
    report.save()


if __name__ == "__main__":
    main()

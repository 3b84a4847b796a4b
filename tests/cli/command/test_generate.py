"""Generated tables and prepared columns, computed from docs/contract.md, clauses 8, 19 and 20, alone: the same bits.

Python's floats are float64, rounded once by each operation; math.fsum is the exact sum, rounded once."""

import math

import numpy as np
import pytest

PI = math.pi


def philox(seed, stream, counter):
    low, high = (lambda x: x % 2**32), (lambda x: x // 2**32)
    x = [low(counter), high(counter), low(stream), high(stream)]
    key = [low(seed), high(seed)]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [high(b) ^ x[1] ^ key[0], low(b), high(a) ^ x[3] ^ key[1], low(a)]
        key = [low(key[0] + 0x9E3779B9), low(key[1] + 0xBB67AE85)]
    return x


def draws(seed, stream, counter):
    x = philox(seed, stream, counter)
    return (2**32 * x[0] + x[1]) // 2**11 / 2**53, (2**32 * x[2] + x[3]) // 2**11 / 2**53


def sin_cos(a):
    q = math.floor(a * float.fromhex("0x1.45f306dc9c883p-1") + 0.5)
    r = (a - q * float.fromhex("0x1.921fb544p+0")) - q * float.fromhex("0x1.0b4611a626331p-34")
    z = r * r
    s = c = 0.0
    for i in range(9, 0, -1):
        s = (1 + s) * (-z / (2 * i * (2 * i + 1)))
        c = (1 + c) * (-z / ((2 * i - 1) * 2 * i))
    s, c = r + r * s, 1 + c
    return [(s, c), (c, -s), (-s, -c), (-c, s)][q % 4]


def ln(x):
    m, e = math.frexp(x)
    if m < math.sqrt(0.5):
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    z = s * s
    t = 0.0
    for i in range(11, 0, -1):
        t = (t + 1 / (2 * i + 1)) * z
    return e * float.fromhex("0x1.62e42fefa39efp-1") + (2 * s + ((2 * s) * t + e * float.fromhex("0x1.abc9e3b39803fp-56")))


def point_of(shape, i, n, d, centers, seed):
    u, v = draws(seed, 1, i)
    if shape == "swiss-roll":
        t = (1.5 * PI) * (1 + 2 * u)
        sin, cos = sin_cos(t)
        return [t * cos, 21 * v, t * sin]
    if shape == "s-curve":
        t = (3 * PI) * (u - 0.5)
        sin, cos = sin_cos(t)
        return [sin, 2 * v, 1 - cos if t < 0 else cos - 1]
    if shape == "moons":
        h = n // 2
        half, m = (i, h) if i < h else (i - h, n - h)
        t = 0.0 if m == 1 else PI if half == m - 1 else half * (PI / (m - 1))
        sin, cos = sin_cos(t)
        return [cos, sin] if i < h else [1 - cos, 0.5 - sin]
    return [-10 + 20 * draws(seed, 0, i % centers * d + j)[0] for j in range(d)]


KDD_ROWS = [97278, 280790, 107201, 2203, 1589, 1247, 1040, 1020, 979, 264, 231, 53, 30, 21, 20, 12, 10, 9, 8, 7, 4, 3, 2]
KDD_DISTINCT = [87832, 641, 51820, 968, 906, 651, 416, 893, 918, 206, 158, 53, 30, 19, 20, 12, 10, 9, 8, 7, 4, 3, 2]
COVER_ROWS = [211840, 283301, 35754, 2747, 9493, 17367, 20510]
ELEVATION = [(3026, 219), (2816, 173), (2398, 194), (2223, 103), (2767, 112), (2423, 189), (3363, 109)]


def share(counts, x):
    place = math.floor(sum(counts) * x)
    return next(c for c in range(len(counts)) if sum(counts[: c + 1]) > place)


def kdd_of(own, seed):
    t = share(KDD_ROWS, own(0))
    w = math.floor(KDD_DISTINCT[t] * own(1))
    row = []
    for j in range(41):
        h, e = draws(seed, 0, 41 * t + j)[0], draws(seed, 4 + t, 32 * w + j // 2)[j % 2]
        x = h * e
        if j in (1, 2, 3):
            row.append(math.floor((3, 66, 11)[j - 1] * (h if e < 0.9 else e)))
        elif j in (0, 4, 5):
            row.append(math.floor(65536 * (x * x * x)))
        elif j in (22, 23, 31, 32):
            row.append(math.floor((512 if j < 31 else 256) * x))
        else:
            row.append(math.floor(1.25 * x) if j < 22 else math.floor(100 * x + 0.5) / 100)
    return row, t


def poker_of(own):
    left = [(suit, rank) for suit in range(1, 5) for rank in range(1, 14)]
    cards = [left.pop(math.floor((52 - c) * own(c))) for c in range(5)]
    ranks = sorted(rank for _, rank in cards)
    often = sorted((ranks.count(rank) for rank in set(ranks)), reverse=True)
    straight = len(often) == 5 and (ranks[4] - ranks[0] == 4 or ranks == [1, 10, 11, 12, 13])
    flush = len({suit for suit, _ in cards}) == 1
    if straight and flush:
        label = 9 if ranks[:2] == [1, 10] else 8
    elif straight or flush:
        label = 5 if flush else 4
    else:
        label = {(4, 1): 7, (3, 2): 6, (3, 1, 1): 3, (2, 2, 1): 2, (2, 1, 1, 1): 1}.get(tuple(often), 0)
    return [value for card in cards for value in card], label


def covertype_of(own):
    half_up = lambda x: math.floor(x + 0.5)
    grid = lambda cells, a, b: half_up(30 * math.sqrt(math.floor(cells * a) ** 2 + math.floor(cells * b) ** 2))
    cover = share(COVER_ROWS, own(0))
    mean, deviation = ELEVATION[cover]
    aspect, slope = math.floor(361 * own(4)), math.floor(66 * (own(5) * own(6)))
    water = grid(17, own(7) * own(8), own(9) * own(10))
    sin, cos = sin_cos(PI * (slope / 180))
    shades = [half_up(255 * max(0, 0.8 * cos + 0.6 * (sin * sin_cos(PI * ((aspect - sun) / 180))[1]))) for sun in (120, 180, 240)]
    row = [half_up(mean + deviation * (2 * ((own(1) + own(2)) + own(3)) - 3)), aspect, slope, water]
    row += [half_up(0.5 * (water * (own(11) - 0.2))), grid(190, own(12) * own(13), own(14) * own(15)), *shades]
    return [*row, grid(190, own(16) * own(17), own(18) * own(19))], cover + 1


@pytest.mark.parametrize("shape", ["kdd", "poker", "covertype"])
def test_twins_follow_the_contract(ok, tmp_path, shape):
    seed = 2**33 + 7
    ok("generate", shape, "-n", 400, "--seed", seed, "-o", "made.npz")
    made = np.load(tmp_path / "made.npz")
    assert sorted(made) == ["labels", "points"]
    for i in range(400):
        own = lambda q: draws(seed, 3, 16 * i + q // 2)[q % 2]
        row, label = {"kdd": lambda: kdd_of(own, seed), "poker": lambda: poker_of(own), "covertype": lambda: covertype_of(own)}[shape]()
        assert made["labels"][i] == label
        assert made["points"][i].tobytes() == np.array(row, np.float64).tobytes()


def table_of(shape, n, d, centers, noise, seed):
    rows = []
    deviation = 1 if shape == "blobs" and noise == 0 else noise
    for i in range(n):
        point = point_of(shape, i, n, d, centers, seed)
        for q in range((d + 1) // 2 if deviation > 0 else 0):
            u, v = draws(seed, 2, i * ((d + 1) // 2) + q)
            r = math.sqrt(-2 * ln(u + 2**-53))
            sin, cos = sin_cos(2 * PI * v)
            point[2 * q] += deviation * (r * cos)
            if 2 * q + 1 < d:
                point[2 * q + 1] += deviation * (r * sin)
        rows.append(point)
    return np.array(rows)


def test_philox_gives_the_published_answer():
    words = philox(0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88)
    assert words == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@pytest.mark.parametrize("shape, d", [("swiss-roll", 3), ("s-curve", 3), ("moons", 2), ("blobs", 5)])
@pytest.mark.parametrize("noise", [0, 0.3])
def test_generated_tables_follow_the_contract(ok, tmp_path, shape, d, noise):
    seed, n = 2**33 + 5, 301
    columns = ["-d", d, "--centers", 4] if shape == "blobs" else []
    ok("generate", shape, "-n", n, *columns, "--noise", noise, "--seed", seed, "-o", "made.npy")
    made = np.load(tmp_path / "made.npy")
    assert made.tobytes() == table_of(shape, n, d, 4, noise, seed).tobytes()


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_prepared_columns_follow_the_contract(ok, tmp_path, scale):
    """As k-means sees them: with a cluster a row, the centers are the prepared rows."""
    generator = np.random.default_rng(5)
    values = np.hstack([generator.normal(1e3, 7, (40, 3)), generator.uniform(-1e-200, 1e-200, (40, 1)), np.full((40, 1), 3.1)])
    np.save(tmp_path / "t.npy", values)
    ok("kmeans", "t.npy", "-c", 40, "--init", "first-k", "--max-iterations", 1, "--scale", scale, "-o", "found.npz")
    wanted = []
    for column in values.T.tolist():
        spread = max(column) - min(column)
        if scale == "minmax":
            shift, unit = min(column), spread
        else:
            e = max(1e-300, spread)
            shift = math.fsum(column) / 40
            squares = [((x - shift) / e) * ((x - shift) / e) for x in column]
            unit = e * math.sqrt(math.fsum(squares) / 40)
        unit = unit if spread > 0 and unit > 0 else 1.0
        wanted.append([(x - shift) / unit for x in column])
    assert np.load(tmp_path / "found.npz")["centres"].tobytes() == np.array(wanted).T.copy().tobytes()

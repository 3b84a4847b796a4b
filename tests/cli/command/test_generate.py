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

"""The factor A of locally linear embedding (docs/contract.md, clause 17), dense, by NumPy's own decompositions: what LAPACK's
singular values and vectors are taken of. Written from the contract; shares no code with the library."""

import numpy as np


def standard(rows, ids, reg=1e-3):
    n, k = ids.shape
    factor = np.eye(n)
    for i, near in enumerate(ids):
        c = rows[near] - rows[i]
        gram = c @ c.T
        trace = np.trace(gram)
        gram[np.diag_indices(k)] += reg * trace if trace > 0 else reg
        weights = np.linalg.solve(gram, np.ones(k))
        factor[i, near] -= weights / weights.sum()
    return factor


def modified(rows, ids, dim):
    n, k = ids.shape
    p = min(k, rows.shape[1])
    left, squares = np.empty((n, k, k)), np.zeros((n, k))
    for i, near in enumerate(ids):
        left[i], values, _ = np.linalg.svd(rows[near] - rows[i])
        squares[i, :p] = values**2
    eta = np.median(squares[:, dim:p].sum(1) / squares[:, :dim].sum(1))
    lines = []
    for i, near in enumerate(ids):
        # As the contract adds them: the row that is the median must compare equal with itself.
        tails = np.array([squares[i, c:p].sum() / squares[i, :c].sum() for c in range(1, p)])
        m = max(1, k - p + int((tails < eta).sum()))
        weights = left[i] @ (left[i].sum(0) / (squares[i] + 1e-3 * squares[i].sum()))
        weights /= weights.sum()
        v = left[i][:, k - m:]
        sums = v.sum(0)
        alpha = np.linalg.norm(sums) / np.sqrt(m)
        h = alpha - sums
        length = np.linalg.norm(h)
        h = np.zeros(m) if length < 1e-12 else h / length
        block = np.zeros((m, n))
        block[:, near] = (v - 2 * np.outer(v @ h, h) + (1 - alpha) * weights[:, None]).T
        block[:, i] = -1
        lines.append(block)
    return np.vstack(lines)


def tangent(rows, ids, dim, second):
    n, k = ids.shape
    lines = []
    for near in ids:
        c = rows[near]
        u = np.linalg.svd(c - c.mean(0))[0][:, :dim]
        basis = np.column_stack([np.ones(k), u])
        if second:
            basis = np.column_stack([basis] + [u[:, a] * u[:, b] for a in range(dim) for b in range(a, dim)])
        q = np.linalg.qr(basis, mode="complete")[0]
        block = np.zeros((basis.shape[1] - 1 - dim if second else k - 1 - dim, n))
        block[:, near] = q[:, 1 + dim:1 + dim + len(block)].T
        lines.append(block)
    return np.vstack(lines)


def factor_of(rows, ids, variant, dim):
    rows = rows.astype(np.float64)
    if variant == "standard":
        return standard(rows, ids)
    if variant == "modified":
        return modified(rows, ids, dim)
    return tangent(rows, ids, dim, variant == "hessian")


def decomposed(factor):
    """Singular values, ascending, and their right vectors as rows; by LAPACK, of the triangle where there are many rows."""
    if len(factor) > factor.shape[1]:
        factor = np.linalg.qr(factor, mode="r")
    _, values, right = np.linalg.svd(factor)
    return values[::-1], right[::-1]


def differences(factor, points, told):
    """What clause 17 bounds, each divided by its bound, so that at most 1 is right: `told` is a piece of the command's
    JSON, `points` [n, dim] its embedding."""
    values, right = decomposed(factor)
    norm = values[-1]
    sigma = np.array(told["singular_values"])
    wanted = values[1:1 + len(sigma)]  # values[0] is the constant's
    ratios = {"sigma": (np.abs(sigma - wanted) / np.maximum(1e-6 * wanted, 1e-14 * norm)).max(),
             "constant": np.abs(points.sum(0)).max() / 1e-12}
    m_norm = norm**2
    products = factor.T @ (factor @ points) - points * sigma**2
    ratios["residual"] = np.linalg.norm(products, axis=0).max() / (1e-14 * m_norm)
    worst = 0
    for c, value in enumerate(wanted):
        away = np.abs(values**2 - value**2)
        cluster = away <= 1e-3 * value**2 + 1e-13 * m_norm
        cluster[0] = False
        outside = ~cluster
        outside[0] = False
        gap = away[outside].min()
        sine = np.linalg.norm(right[outside] @ points[:, c])
        worst = max(worst, sine / max(1e-6, 10 * np.finfo(float).eps * m_norm / gap))
    return {**ratios, "angle": worst}

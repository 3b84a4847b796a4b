"""Co-clusters of bipartite graphs."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Unpack

from vicinal import _core
from vicinal._names import documented
from vicinal._options import CoclusterOptions, SpectralOptions
from vicinal._results import Float64Array, Int32Array, Int64Array, Record, Result

__all__ = ["Cocluster", "SpectralCocluster", "cocluster", "spectral_cocluster"]


class CoclusterPlan(Record):
    """What ran."""

    method: str
    device: str
    threads: int
    memory: int
    device_memory: int


class Cocluster(Result):
    """Connected components. Member i of A is number i, member j of B number n_a + j; a group's label is its smallest
    number."""

    _records: ClassVar[dict[str, Callable[[Any], Record]]] = {"plan": CoclusterPlan}

    labels_a: Int64Array  #: [n_a]
    labels_b: Int64Array  #: [n_b]
    group_labels: Int64Array  #: [groups] ascending
    counts_a: Int64Array  #: [groups] members of A
    counts_b: Int64Array  #: [groups] members of B
    relations: list[str]  #: [groups] "1:1", "1:n", "n:1", "n:m", "1:0", "0:1"
    plan: CoclusterPlan


class SpectralCocluster(Result):
    """Clusters of members by the leading singular vectors."""

    clusters: int
    labels_a: Int32Array  #: [n_a]
    labels_b: Int32Array  #: [n_b]
    singular_values: Float64Array
    residual: float
    rounds: int


@documented("CoclusterOptions")
def cocluster(
    a: Any,
    b: Any = None,
    *,
    n_a: int | None = None,
    n_b: int | None = None,
    weights: Any = None,
    **options: Unpack[CoclusterOptions],
) -> Cocluster:
    """The connected components of edges (a[e], b[e]) between members of two sets, or of a matrix `a` [n_a, n_b] whose
    nonzero elements are edges. `n_a`, `n_b`: members of each set; by default one more than the largest id. Raises
    BadData naming the first edge with an id outside its side or a weight that is negative or not finite. O(edges)."""
    if b is None:
        return Cocluster(_core.cocluster(a, None, options))
    return Cocluster(_core.cocluster(a, b, {"n_a": n_a, "n_b": n_b, "weights": weights, **options}))


@documented("SpectralOptions")
def spectral_cocluster(
    a: Any,
    b: Any,
    *,
    n_a: int | None = None,
    n_b: int | None = None,
    weights: Any = None,
    **options: Unpack[SpectralOptions],
) -> SpectralCocluster:
    """`clusters` of both sides of a bipartite graph (Dhillon 2001), edges as for `cocluster`. Raises as `cocluster`,
    and BadData for weights that are all 0. O(edges log clusters) a round."""
    keywords = {"n_a": n_a, "n_b": n_b, "weights": weights, **options}
    return SpectralCocluster(_core.spectral_cocluster(a, b, keywords))

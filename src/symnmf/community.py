"""Communities of a graph, with the graph's own node names."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from symnmf import graphs, tensors
from symnmf.errors import InputError
from symnmf.estimator import check_cluster_count
from symnmf.run.loop import Callback, factorize
from symnmf.run.multistart import DEFAULT_STARTS, Plan, warn_unless_converged
from symnmf.run.start import RandomState

#: Share of a node's membership above which it belongs to a community.
DEFAULT_THRESHOLD = 0.25


def communities(
    G: Any,
    k: int,
    *,
    order: int = 2,
    overlapping: bool = False,
    threshold: float = DEFAULT_THRESHOLD,
    weight: str | None = "weight",
    normalize: bool = True,
    allow_negative: bool = False,
    n_init: int = DEFAULT_STARTS,
    init: Any = "scaled-random",
    random_state: RandomState = None,
    tol: float = 1e-4,
    max_time: float | None = None,
    n_jobs: int | None = None,
    device: Any = None,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    **options: Any,
) -> list[set[Hashable]]:
    r"""Find ``k`` communities of an undirected graph by symmetric NMF of its adjacency matrix.

    With :math:`A \approx U U^T`, node i belongs to the community of the largest entry in its row
    of U; with ``overlapping=True`` to every community that holds more than ``threshold`` of the
    row's sum, and always to that of the largest entry.

    Parameters
    ----------
    G : networkx.Graph, igraph.Graph, scipy sparse matrix or array
        Undirected, without parallel edges; weights finite, and nonnegative unless said otherwise.
    k : int
        Communities to look for, at most the number of nodes that have edges.
    order : {2, 3}
        2 looks at edges; 3 at triangles, by the tensor of :func:`symnmf.tensors.triangles`: a
        community is then a group whose triples hold together. Entries with a repeated index count
        as zeros and nothing is normalized, which did better on graphs with known communities
        (docs/tensors.md). Nodes in no triangle are treated as nodes without edges are.
    overlapping : bool, default False
        Whether a node may belong to several communities.
    threshold : float, default 0.25
        In [0, 1). A node's shares sum to 1, so at the default it is in at most three communities
        and each holds more than a quarter of it. On the circles of ego-Facebook the overlapping
        F1 is flat from 0.25 to 0.4 (0.385 to 0.389) and falls below (0.379 at 0.2).
    weight : str or None
        The edge attribute with the weights. Edges without it count 1, and with None every edge
        does; a name other than "weight" that no edge has is an error.
    normalize : bool, default True
        Factorize :math:`D^{-1/2} A D^{-1/2}`, D the degrees, so that hubs do not outweigh the
        rest; False takes A as it is.
    allow_negative : bool, default False
        Accept negative weights, of edges that keep nodes apart; degrees are then sums of sizes.
    n_init, init, random_state, tol, max_time, n_jobs, device, checkpoint, checkpoint_every
        As in :class:`symnmf.SymNMF`.
    callback : callable or None
        As in :func:`symnmf.factorize`; it sees every start, which may run in a thread of its
        own, and a true return value ends them all.
    **options
        Further options of :func:`symnmf.factorize`: ``solver``, ``penalty``,
        ``inner_sweeps``, ``max_iter``, ``record_every`` and ``ignore_diagonal``.

    Returns
    -------
    list of set
        Sets of node names (row numbers for a matrix), the largest first, equal ones in the order
        of their first node. Communities that no node belongs to are left out, so there may be
        fewer than ``k``. A node without edges is a community of its own, as in networkx's
        Louvain method; these are not counted in ``k``. Without ``overlapping`` the sets are a
        partition of the nodes.

    Examples
    --------
    >>> import networkx, symnmf
    >>> found = symnmf.communities(networkx.karate_club_graph(), 2, random_state=0)
    >>> [len(community) for community in found]
    [18, 16]
    """
    _check_options(options)
    check_cluster_count(k, "k")
    flags = {"overlapping": overlapping, "normalize": normalize, "allow_negative": allow_negative}
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {flag!r}.")
    if order not in (2, 3):
        raise InputError(f"order must be 2 (edges) or 3 (triangles), got {order!r}.")
    if not (isinstance(threshold, int | float | np.number) and 0 <= threshold < 1):
        raise InputError(f"threshold must be a number in [0, 1), got {threshold!r}.")
    plan = Plan(
        int(k),
        n_init=n_init,
        init=init,
        random_state=random_state,
        max_time=max_time,
        n_jobs=n_jobs,
        device=device,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        progress=(lambda _, now: callback(now)) if callback else None,
        options={"tol": tol, "allow_negative": allow_negative, **options},
    )
    plan.check()
    A, names = graphs.from_graph(G, weight=weight, allow_negative=allow_negative)
    if allow_negative and order == 3 and A.nnz and A.data.min() < 0:
        raise InputError("order=3 counts triangles, whose weights must not be negative.")
    triangles = tensors.triangles(A, repeated="observed", n_jobs=n_jobs)[0] if order == 3 else None
    connected = np.flatnonzero(abs(A).sum(axis=1) if triangles is None else triangles.rows_in_use)
    alone = np.setdiff1d(np.arange(len(names)), connected)
    if connected.size == 0:
        return [{name} for name in names]
    if k > connected.size:
        raise InputError(
            f"k={k} is more than the {connected.size} nodes of G that have "
            f"{'edges' if order == 2 else 'triangles'}; choose at most k={connected.size}."
        )
    if triangles is not None:
        part = triangles.restricted(connected)
        plan = replace(plan, options=tensors.tensor_options(part, plan.options))
        result = plan.best(part)
    else:
        if alone.size:
            A = A[connected][:, connected]
        result = plan.best(graphs.normalize(A, allow_negative=allow_negative) if normalize else A)
    warn_unless_converged(result, tol, plan.starts, stacklevel=2)
    belongs = np.zeros(result.U.shape, dtype=bool)
    belongs[np.arange(connected.size), result.labels] = True
    if overlapping:
        belongs |= result.membership > threshold
    members = [connected[column] for column in belongs.T if column.any()]
    members.sort(key=lambda nodes: (-nodes.size, nodes[0]))
    return [{names[node] for node in nodes} for nodes in (*members, *alone[:, None])]


def _check_options(options: dict[str, Any]) -> None:
    """Refuse what ``factorize`` does not take, and what is settled here, under this name."""
    settled = {"X", "rank", "resume", "mask", "weights", "missing"}
    settled |= set(inspect.signature(communities).parameters)
    passed_on = [name for name in inspect.signature(factorize).parameters if name not in settled]
    for name in options:
        if name not in passed_on:
            raise TypeError(
                f"communities() got an unexpected option {name!r}; besides the arguments of its "
                f"own signature it takes {', '.join(passed_on)}."
            )

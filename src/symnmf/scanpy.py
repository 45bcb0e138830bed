"""Clusters of cells, in the manner of scanpy's tools (needs the extra ``anndata``)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from symnmf.arguments import checked
from symnmf.community import communities_of
from symnmf.errors import InputError
from symnmf.interchange import is_anndata
from symnmf.options import CommunityOptions

__all__ = ["cluster"]


@checked(
    CommunityOptions,
    neighbors_key=("text", "none"),
    obsp=("text", "none"),
    key_added=("text",),
    copy=("flag",),
)
def cluster(
    adata: Any,
    n_clusters: int | str,
    *,
    neighbors_key: str | None = None,
    obsp: str | None = None,
    key_added: str = "symnmf",
    copy: bool = False,
    **options: Unpack[CommunityOptions],
) -> Any:
    """Cluster the cells of an AnnData by the neighbour graph that ``scanpy.pp.neighbors`` made.

    Parameters
    ----------
    adata : AnnData
    n_clusters : int or "auto"
    neighbors_key : str, optional
        ``adata.uns[neighbors_key]`` names the graph, as scanpy stores it; by default "neighbors",
        or ``adata.obsp["connectivities"]`` without it.
    obsp : str, optional
        The graph itself, ``adata.obsp[obsp]``, instead.
    key_added : str
        The name of the results.
    copy : bool
        Write to a copy and return it, instead of writing to ``adata`` and returning None.
    **options
        Further parameters of :func:`symnmf.communities`. The seed is written to ``uns``, also
        where it was drawn.

    Notes
    -----
    Clusters are judged by the coordinates that the graph was made of, in ``adata.obsm``.

    This function writes ``obs[key_added]``, the cluster as a category ("-1" for a cell in none);
    ``obsm["X_" + key_added]``, the factor U, with the largest entry of each row in its cluster;
    and ``uns[key_added]``, parameters and quality.
    """
    if not is_anndata(adata):
        raise InputError(f"adata must be an AnnData, got {type(adata).__name__}.")
    if neighbors_key is not None and obsp is not None:
        raise InputError("neighbors_key and obsp both name a graph; give one of them.")
    adata = adata.copy() if copy else adata
    place = _graph_key(adata, neighbors_key) if obsp is None else obsp
    if place not in adata.obsp:
        known = ", ".join(map(repr, adata.obsp)) or "none"
        raise InputError(
            f"adata.obsp has no graph {place!r} (it has {known}); run scanpy.pp.neighbors(adata) "
            f"first, or name one by obsp=."
        )
    graph = adata.obsp[place]
    points = _coordinates(adata, neighbors_key) if obsp is None else None
    found = communities_of(graph, points, n_clusters=n_clusters, **options)
    import pandas as pd

    numbers = [str(label) for label in np.unique(found.labels)]
    adata.obs[key_added] = pd.Categorical(found.labels.astype(str), categories=numbers)
    adata.uns.pop(f"{key_added}_colors", None)  # they belong to the clusters before
    adata.obsm[f"X_{key_added}"] = getattr(found._fitted, "U", found.result.U)
    plain = {k: v for k, v in options.items() if isinstance(v, int | float | str)}
    adata.uns[key_added] = {
        "params": {
            **plain,
            "n_clusters": found.result.U.shape[1],
            "obsp": place,
            "random_state": found.seed if isinstance(found.seed, int) else str(found.seed),
            "degree_offset": found.degree_offset,
        },
        **({} if found.rank_selection is None else {"reason": found.rank_selection.reason}),
        "error": float(found.result.error),
        "status": found.result.status,
        "verdict": str(found.quality.verdict or ""),
        "modularity": found.quality.modularity,
        "conductance": np.array(found.quality.conductance),
    }
    return adata if copy else None


def _graph_key(adata: Any, neighbors_key: str | None) -> str:
    key = neighbors_key or "neighbors"
    if key in adata.uns:
        return str(adata.uns[key].get("connectivities_key", "connectivities"))
    if neighbors_key is not None:
        raise InputError(
            f"adata.uns has no {neighbors_key!r}; run scanpy.pp.neighbors(adata, "
            f"key_added={neighbors_key!r}) first."
        )
    return "connectivities"


def _coordinates(adata: Any, neighbors_key: str | None) -> np.ndarray | None:
    """The points that scanpy made the graph of, where they are in ``adata.obsm``."""
    params = adata.uns.get(neighbors_key or "neighbors", {}).get("params", {})
    place = params.get("use_rep") or "X_pca"
    if place not in adata.obsm:
        return None
    return np.asarray(adata.obsm[place], dtype=np.float64)[:, : params.get("n_pcs")]

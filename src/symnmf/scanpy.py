"""Clusters of cells, in the manner of scanpy's tools (needs the extra ``anndata``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf import graphs
from symnmf.errors import InputError
from symnmf.estimator import SymNMF
from symnmf.interchange import is_anndata

__all__ = ["cluster"]


def cluster(
    adata: Any,
    n_clusters: int,
    *,
    neighbors_key: str | None = None,
    obsp: str | None = None,
    key_added: str = "symnmf",
    random_state: int | None = 0,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Cluster the cells of an AnnData by the neighbour graph that ``scanpy.pp.neighbors`` made.

    Parameters
    ----------
    adata : AnnData
    n_clusters : int
    neighbors_key : str, optional
        ``adata.uns[neighbors_key]`` names the graph, as scanpy stores it; by default "neighbors",
        or ``adata.obsp["connectivities"]`` without it.
    obsp : str, optional
        The graph itself, ``adata.obsp[obsp]``, instead.
    key_added : str
        Under which name the results are written.
    random_state : int or None
        The seed; None draws one. It is written to ``uns`` in either case.
    copy : bool
        Write to a copy and return it, instead of writing to ``adata`` and returning None.
    **options
        Further parameters of :class:`symnmf.SymNMF`.

    Notes
    -----
    Written are ``obs[key_added]``, the cluster as a category ("-1" for a cell in none);
    ``obsm["X_" + key_added]``, the factor U; and ``uns[key_added]``, parameters and quality.
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
    model = SymNMF(n_clusters, affinity="precomputed", random_state=random_state, **options)
    model.fit(graphs.normalize(adata.obsp[place], degree_offset=0.0))
    import pandas as pd

    names = [str(label) for label in model.labels_]
    present = [str(label) for label in np.unique(model.labels_)]
    adata.obs[key_added] = pd.Categorical(names, categories=present)
    adata.obsm[f"X_{key_added}"] = model.embedding_
    quality = model.quality_
    adata.uns[key_added] = {
        "params": {
            "n_clusters": int(n_clusters),
            "obsp": place,
            "random_state": int(str(model.seed_)),
            "init": str(model.init),
            "n_init": int(model.n_init),
            "tol": float(model.tol),
        },
        "error": float(model.reconstruction_err_),
        "status": model.status_,
        "modularity": quality.modularity,
        "conductance": np.array(quality.conductance),
    }
    return adata if copy else None


def _graph_key(adata: Any, neighbors_key: str | None) -> str:
    key = "neighbors" if neighbors_key is None else neighbors_key
    if key in adata.uns:
        return str(adata.uns[key].get("connectivities_key", "connectivities"))
    if neighbors_key is not None:
        raise InputError(
            f"adata.uns has no {neighbors_key!r}; run scanpy.pp.neighbors(adata, "
            f"key_added={neighbors_key!r}) first."
        )
    return "connectivities"

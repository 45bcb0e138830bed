"""One sound call of each public callable, which attacks then spoil."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf import coupling, datasets, graphs, io, metrics, solvers, storage, tensors
from symnmf.options import ClusterOptions, CommunityOptions, ProblemOptions, names_in

RNG = np.random.default_rng(0)
B = RNG.random((12, 2))
X = B @ B.T
POINTS = RNG.random((30, 3))
LABELS = [0, 1] * 6
SPARSE = sp.csr_array(np.where(np.median(X) < X, X, 0.0))
FIT = symnmf.factorize(X, 2, random_state=0, tol=1e-2)
GROUPS = np.kron(np.eye(3), np.ones((5, 5))) + 0.01
GROUPED = graphs.Hypergraph([[0, 1, 2], [1, 2], [3, 4, 5], [4, 5], [2, 3]])
SHORT = {"max_iter": 3, "tol": 0.1, "random_state": 0}
#: What functions with ``**problem`` pass on.
OBJECTIVE = names_in(ProblemOptions)


@dataclass(frozen=True)
class Sound:
    """A call that works: what is called, and with what."""

    call: Callable[..., Any]
    given: dict[str, Any]
    signature: Callable[..., Any] | None = None
    options: tuple[str, ...] = ()  # that are passed on as keywords

    def parameters(self) -> list[str]:
        """Names of the parameters, from the signature."""
        found = inspect.signature(self.signature or self.call).parameters.values()
        loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        named = [each.name for each in found if each.kind not in loose and each.name != "self"]
        return [*named, *self.options]


def _cells() -> Any:
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(B)
    adata.obsp["connectivities"] = sp.csr_matrix(SPARSE)
    return adata


def _fitted(**given: Any) -> Any:
    X = given.pop("X")
    return symnmf.SymNMF(**given).fit(X)


def _solved_by(kind: type) -> Callable[..., Any]:
    loss = "poisson" if kind.__name__ in ("ExpectationMaximization", "RowNewton") else "frobenius"
    return lambda **given: symnmf.factorize(
        X, 2, solver=kind(**given), loss=loss, max_iter=3, tol=0.1
    )


def _coupled_by(kind: type) -> Callable[..., Any]:
    return lambda **given: symnmf.factorize(
        X, 2, solver="symhals", coupling=kind(**given), max_iter=3, tol=0.1
    )


def sound_calls(folder: Path) -> dict[str, Sound]:
    """One sound call of each public callable; limits keep each short."""
    communities = symnmf.communities(SPARSE, 2, n_init=1, random_state=0, tol=0.1)
    return {
        **_factorizing(folder),
        **_fitting(communities),
        **_of_files(folder),
        **_of_graphs(),
        **_of_tensors(),
        **_of_scores(),
        **_of_settings(),
        **_drawn(folder, communities),
    }


def _factorizing(folder: Path) -> dict[str, Sound]:
    FIT.save(folder / "fit.npz")
    return {
        "factorize": Sound(symnmf.factorize, {"X": X, "rank": 2, **SHORT}, options=OBJECTIVE),
        "compare": Sound(symnmf.compare, {"X": X, "rank": 2, "solvers": ["pgd"], "max_iter": 3}),
        "Result.save": Sound(FIT.save, {"path": folder / "saved.npz"}),
        "Result.load": Sound(symnmf.Result.load, {"path": folder / "fit.npz"}),
        "Result.certificate": Sound(FIT.certificate, {"problem": X}),
        "Result.bound": Sound(FIT.bound, {"problem": X, "max_time": 0.1}),
        "Problem": Sound(symnmf.Problem, {"X": X}),
        "consensus": Sound(
            symnmf.consensus, {"X": X, "rank": 2, "n_runs": 2, **SHORT}, options=OBJECTIVE
        ),
        "extending.as_symmetric": Sound(symnmf.extending.as_symmetric, {"X": X}),
        "storage.LowRank": Sound(storage.LowRank, {"B": B}),
        "storage.Layers": Sound(storage.Layers, {"layers": [X, X]}),
    }


def _fitting(communities: Any) -> dict[str, Sound]:
    fit = {"X": POINTS, "n_clusters": 2, "n_init": 1, **SHORT}
    fitted, tree = symnmf.SymNMF(2, **SHORT).fit(POINTS), symnmf.hierarchy(GROUPS, random_state=0)
    again = symnmf.SymNMF(2, **SHORT).fit
    described = symnmf.communities(SPARSE, 2, n_init=1, random_state=0, tol=0.1, attributes=B)
    return {
        "communities": Sound(
            symnmf.communities,
            {"G": SPARSE, "n_clusters": 2, "n_init": 1, "tol": 0.1, "random_state": 0},
            options=names_in(ClusterOptions),
        ),
        "Communities.predict": Sound(communities.predict, {"edges": {0: 1.0}}),
        "Communities.transform": Sound(communities.transform, {"edges": {0: 1.0}}),
        "SymNMF": Sound(_fitted, fit, symnmf.SymNMF),
        "scanpy.cluster": Sound(
            symnmf.scanpy.cluster,
            {"adata": _cells(), "n_clusters": 2, "n_init": 1, "tol": 0.1},
            options=names_in(CommunityOptions),
        ),
        "SymNMF.fit": Sound(again, {"X": POINTS}),
        "SymNMF.predict": Sound(fitted.predict, {"X": POINTS}),
        "SymNMF.transform": Sound(fitted.transform, {"X": POINTS}),
        "SymNMF.top_features": Sound(fitted.top_features, {"X": POINTS}),
        "top_features": Sound(symnmf.top_features, {"X": POINTS, "membership": POINTS[:, :2]}),
        "modularity_scorer": Sound(symnmf.modularity_scorer, {"model": fitted, "X": POINTS}),
        "hierarchy": Sound(symnmf.hierarchy, {"X": GROUPS, "random_state": 0}),
        "Hierarchy.cut": Sound(tree.cut, {"n_clusters": 2}),
        "Communities.about": Sound(described.about, {}),
    }


def _of_files(folder: Path) -> dict[str, Sound]:
    (folder / "X.csv").write_text("\n".join(",".join(map(repr, row)) for row in X.tolist()))
    (folder / "y.txt").write_text("\n".join(map(str, LABELS)))
    np.save(folder / "X.npy", X)
    return {
        "read": Sound(io.read, {"path": folder / "X.csv"}),
        "read_labels": Sound(io.read_labels, {"path": folder / "y.txt"}),
        "write_table": Sound(io.write_table, {"path": folder / "t.csv", "columns": {"a": [1]}}),
        "storage.Blocks": Sound(storage.Blocks, {"source": folder / "X.npy"}),
        "datasets.load": Sound(datasets.load, {"name": "karate"}),
        "datasets.available": Sound(datasets.available, {}),
        "datasets.synthetic": Sound(datasets.synthetic, {"n": 12, "rank": 2}),
    }


def _of_graphs() -> dict[str, Sound]:
    edges = [[0, 1], [1, 2], [2, 0]]
    return {
        "graphs.build": Sound(graphs.build, {"X": POINTS}),
        "graphs.normalize": Sound(graphs.normalize, {"A": X}),
        "graphs.from_graph": Sound(graphs.from_graph, {"G": SPARSE}),
        "graphs.from_edges": Sound(graphs.from_edges, {"edges": edges}),
        "graphs.scale_attributes": Sound(graphs.scale_attributes, {"F": B}),
        "graphs.Hypergraph": Sound(graphs.Hypergraph, {"hyperedges": [[0, 1, 2], [2, 3]]}),
        "Hypergraph.from_arrays": Sound(
            graphs.Hypergraph.from_arrays, {"members": [0, 1, 2, 1, 2], "indptr": [0, 3, 5]}
        ),
        "Hypergraph.of_sizes": Sound(GROUPED.of_sizes, {}),
        "Hypergraph.rates": Sound(GROUPED.rates, {"U": np.ones((6, 2))}),
        "communities(hypergraph)": Sound(
            symnmf.communities,
            {"G": GROUPED, "n_clusters": 2, "n_init": 1, "tol": 0.1, "random_state": 0},
        ),
        "communities(attributes)": Sound(
            symnmf.communities,
            {
                "G": SPARSE,
                "n_clusters": 2,
                "n_init": 1,
                "tol": 0.1,
                "random_state": 0,
                "attributes": B,
            },
        ),
        "communities(layers)": Sound(
            symnmf.communities,
            {"G": [SPARSE, SPARSE], "n_clusters": 2, "n_init": 1, "tol": 0.1, "random_state": 0},
        ),
        "graphs.constrained": Sound(graphs.constrained, {"A": X, "must_link": [[0, 1]]}),
    }


def _of_tensors() -> dict[str, Sound]:
    tensor = tensors.from_tuples([[0, 1, 2], [1, 2, 3], [0, 2, 3]])
    return {
        "factorize a tensor": Sound(symnmf.factorize, {"X": tensor, "rank": 2, **SHORT}),
        "tensors.as_tensor": Sound(tensors.as_tensor, {"T": tensor}),
        "tensors.normalize": Sound(tensors.normalize, {"T": tensor}),
        "tensors.from_tuples": Sound(tensors.from_tuples, {"indices": [[0, 1, 2], [1, 2, 3]]}),
        "tensors.from_hyperedges": Sound(tensors.from_hyperedges, {"hyperedges": [[0, 1, 2]]}),
        "tensors.triangles": Sound(tensors.triangles, {"G": np.ones((4, 4)) - np.eye(4)}),
    }


def _of_scores() -> dict[str, Sound]:
    calls = {}
    for name in ("clustering_accuracy",):
        given: dict[str, Any] = {"labels_true": LABELS, "labels_pred": LABELS}
        calls[f"metrics.{name}"] = Sound(getattr(metrics, name), given)
    for name in ("overlapping_nmi", "overlapping_f1", "best_match_f1", "omega_index"):
        given = {"true_communities": [[0], [1]], "found_communities": [[0, 1]]}
        calls[f"metrics.{name}"] = Sound(getattr(metrics, name), given)
    return calls


def _of_settings() -> dict[str, Sound]:
    calls = {}
    for name in solvers.__all__:
        kind = getattr(solvers, name)
        if inspect.isclass(kind):
            calls[f"solvers.{name}"] = Sound(_solved_by(kind), {}, kind)
    for name in coupling.__all__:
        rule = getattr(coupling, name)
        given = {"value": 1.0} if rule is coupling.Fixed else {}
        calls[f"coupling.{name}"] = Sound(_coupled_by(rule), given, rule)
    return calls


def _drawn(folder: Path, communities: Any) -> dict[str, Sound]:
    """What needs matplotlib or networkx, where they are there."""
    try:
        import matplotlib as mpl
        import networkx as nx
    except ImportError:
        return {}
    mpl.use("Agg")
    from symnmf import plots, report

    return {
        "plots.convergence": Sound(plots.convergence, {"table": FIT}),
        "plots.points": Sound(plots.points, {"U": FIT.U, "labels": LABELS}),
        "plots.similarity": Sound(plots.similarity, {"A": X, "labels": LABELS}),
        "plots.typical_members": Sound(
            plots.typical_members, {"images": POINTS, "U": POINTS, "image_shape": (1, 3)}
        ),
        "write_report": Sound(
            report.write_report, {"path": folder / "page.html", "fit": communities}
        ),
        "Communities.to_networkx": Sound(
            communities.to_networkx, {"graph": nx.from_scipy_sparse_array(SPARSE)}
        ),
    }

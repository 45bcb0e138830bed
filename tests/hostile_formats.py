"""Files of formats that other libraries write, for the attacks on their readers."""

from __future__ import annotations

import importlib.util
import io
import json
import random
from typing import Any

import numpy as np

PAJEK = b"""% a comment
*Vertices 4
1 "Ann Lee" 0.1 0.2
2 "Bob"
3 Zoe
*Arcs :1 "r"
1 2 3
2 1 3
*Edges
2 3 1.5
*Edgeslist
1 3 4
"""
VOSVIEWER = json.dumps(
    {
        "network": {
            "items": [{"id": 7, "label": "nmf"}, {"id": 3, "label": "graph"}, {"id": 5}],
            "links": [
                {"source_id": 7, "target_id": 3, "strength": 2.5},
                {"source_id": 3, "target_id": 5, "strength": 1},
            ],
        }
    }
).encode()
HYPEREDGES = b"# groups\na b c\nb c\na,d,e\nc d e\n"


def h5ad() -> bytes:
    """A file of cells with points, an embedding and a graph, as anndata writes them."""
    import h5py

    rng, buffer = np.random.default_rng(0), io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["X"] = rng.random((6, 3))
        file["X"].attrs["encoding-type"] = "array"
        obs = file.create_group("obs")
        obs.attrs["_index"] = "_index"
        obs["_index"] = np.array([b"c%d" % i for i in range(6)])
        graph = file.create_group("obsp/connectivities")
        graph.attrs["encoding-type"], graph.attrs["shape"] = "csr_matrix", (6, 6)
        graph["data"], graph["indices"] = np.ones(6), np.array([1, 0, 3, 2, 5, 4])
        graph["indptr"] = np.arange(7)
    return buffer.getvalue()


def cool() -> bytes:
    """A file of contacts between pieces of a genome."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["chroms/name"] = np.array([b"chr1", b"chr2"])
        file["bins/chrom"], file["bins/weight"] = np.arange(6) // 3, np.ones(6)
        file["bins/start"], file["bins/end"] = np.arange(6) * 10, np.arange(6) * 10 + 10
        file["pixels/bin1_id"], file["pixels/bin2_id"] = np.arange(5), np.arange(1, 6)
        file["pixels/count"] = np.arange(1, 6)
    return buffer.getvalue()


def parquet() -> bytes:
    """A table of edges, as pandas and polars write it."""
    import pyarrow
    import pyarrow.parquet

    buffer = io.BytesIO()
    table = pyarrow.table({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "weight": [1.0] * 4})
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def binary_seeds() -> dict[str, bytes]:
    """Return the files whose libraries are installed."""
    seeds: dict[str, bytes] = {}
    if importlib.util.find_spec("h5py"):
        seeds |= {"cells.h5ad": h5ad(), "contacts.cool": cool()}
    if importlib.util.find_spec("pyarrow"):
        seeds["table.parquet"] = parquet()
    return seeds


def grown_pajek(rng: random.Random, lines: bytes) -> bytes:
    """A Pajek file with such lines, most of them edges."""
    nodes = rng.choice([b"50", b"3", b"0", b"-1", b"x", b"99999999999"])
    kind = rng.choice([b"*Edges", b"*Arcs", b"*arcslist", b"*Edgeslist", b"*Matrix", b"*Network"])
    return b"*Vertices " + nodes + b"\n" + rng.choice([b"", b'1 "a"\n']) + kind + b"\n" + lines


def grown_json(rng: random.Random) -> bytes:
    """A VOSviewer file with something odd in it."""
    odd: list[Any] = [
        None,
        -1,
        0,
        1e308,
        "",
        "x",
        [],
        {},
        True,
        2**70,
        [[]],
        float("nan"),
        float("inf"),
    ]

    def value() -> object:
        return rng.choice(odd) if rng.random() < 0.15 else rng.randrange(5)

    items = [{"id": k if rng.random() < 0.9 else value(), "label": value()} for k in range(5)]
    links = [
        {"source_id": value(), "target_id": value(), "strength": value()}
        for _ in range(rng.randrange(6))
    ]
    network: dict[str, Any] = {"items": items, "links": links}
    for key in ("items", "links"):
        if rng.random() < 0.05:
            network[key] = rng.choice(odd)
    return json.dumps({"network": network}).encode()

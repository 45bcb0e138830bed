"""What a first call on a small problem does not have to load or compile."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

#: The first calls.
CALLS = {
    "factorize": """
B = rng.random((200, 5))
symnmf.factorize(B @ B.T, 5)
""",
    "communities": """
A = np.triu(rng.random((200, 200)) < np.where(np.equal.outer(kind, kind), 0.3, 0.02), 1)
symnmf.communities(sp.csr_array((A + A.T).astype(float)), 5)
""",
    "SymNMF": """
symnmf.SymNMF(4).fit(rng.normal(size=(200, 4)) + 6 * np.eye(4)[kind % 4])
""",
}
#: What none of them loads: scikit-learn is what SymNMF is made of.
NOT_LOADED = [
    "matplotlib", "networkx", "torch", "dask", "h5py", "zarr",
    "symnmf.kernels.likelihood", "symnmf.kernels.pivoting", "symnmf.kernels.weighted",
    "symnmf.rowsparse", "symnmf.objectives.attributed", "symnmf.objectives.likelihood",
    "symnmf.objectives.weighted",
    "symnmf.solvers.admm", "symnmf.solvers.pgd", "symnmf.storage.blocks", "symnmf.storage.dask",
    "symnmf.tensors",
]  # fmt: skip
OF_SCIKIT_LEARN = ["joblib", "pandas", "pyarrow", "scipy.optimize", "scipy.stats", "sklearn"]

TOLD = """
import json
from numba.core.dispatcher import Dispatcher

kernels = {}
for name, module in list(sys.modules.items()):
    if name.startswith("symnmf.kernels."):
        for one in vars(module).values():
            if isinstance(one, Dispatcher) and one.signatures:
                kernels[one.__name__] = len(one.signatures)
print(json.dumps([kernels, sorted(sys.modules)]))
"""


def first_call(name):
    """Do a call in a process of its own; return its kernels and the modules it loaded."""
    start = "import sys, numpy as np, scipy.sparse as sp, symnmf;"
    data = "rng, kind = np.random.default_rng(0), np.arange(200) % 5"
    done = subprocess.run(
        [sys.executable, "-c", start + data + CALLS[name] + TOLD],
        capture_output=True,
        text=True,
        check=True,
    )
    kernels, modules = json.loads(done.stdout.splitlines()[-1])
    return kernels, set(modules)


@pytest.mark.parametrize("name", CALLS)
def test_a_first_call_loads_and_compiles_what_it_uses(name):
    kernels, modules = first_call(name)
    assert kernels
    assert set(kernels.values()) == {1}
    unused = NOT_LOADED if name == "SymNMF" else NOT_LOADED + OF_SCIKIT_LEARN
    assert not modules.intersection(unused)


@pytest.mark.parametrize("package", ["graphs", "objectives", "solvers", "storage", "tensors"])
def test_a_package_offers_all_its_names(package):
    module = importlib.import_module(f"symnmf.{package}")
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"symnmf.{package}' has no attribute 'nothing'"):
        _ = module.nothing

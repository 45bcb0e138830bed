from __future__ import annotations

import os
from pathlib import Path

# before SciPy is imported: scikit-learn's estimator checks then include those for array libraries
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "symnmf", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("symnmf")


def data_folder() -> Path | None:
    """Where the real data sets are, if they are."""
    named = os.environ.get("SYMNMF_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("the real data sets are absent: set SYMNMF_DATA to their folder")
    return folder


def synthetic_problem(n, r, noise=0.0, seed=0):
    """The paper's X = |G||G|^T + noise |N| with N symmetric."""
    rng = np.random.default_rng(seed)
    factor = np.abs(rng.standard_normal((n, r)))
    upper = np.triu(np.abs(rng.standard_normal((n, n))))
    return factor @ factor.T + noise * (upper + np.triu(upper, 1).T)


def long_count(variable: str, default: int) -> int:
    """How often a long test tries something; the environment may ask for more or less."""
    return int(os.environ.get(variable, default))

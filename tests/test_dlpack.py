"""Arrays of other libraries, in and out by DLPack."""

import contextlib

import numpy as np
import pytest

import symnmf

strict = pytest.importorskip("array_api_strict")


def matrix(n=24, seed=0):
    U = np.abs(np.random.default_rng(seed).normal(size=(n, 3)))
    return U @ U.T


def libraries():
    """One library that is always there, and the large ones where they are installed."""
    yield pytest.param(strict.asarray, id="array-api-strict")
    with contextlib.suppress(ModuleNotFoundError):
        import jax

        jax.config.update("jax_enable_x64", True)
        yield pytest.param(jax.numpy.asarray, id="jax")
    with contextlib.suppress(ModuleNotFoundError):
        import cupy

        yield pytest.param(cupy.asarray, id="cupy")


@pytest.mark.parametrize("asarray", libraries())
def test_factors_are_of_the_callers_library(asarray):
    X = matrix()
    given = asarray(X)
    result = symnmf.factorize(given, 3, random_state=0)
    reference = symnmf.factorize(X, 3, random_state=0)
    assert type(result.U) is type(given)
    assert type(result.labels) is type(given)
    np.testing.assert_allclose(np.from_dlpack(result.U), reference.U, rtol=1e-6, atol=1e-9)
    assert result.certificate().certified == reference.certificate().certified


def test_what_cannot_be_handed_over_is_said():
    class Other:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            raise BufferError("no such type")

    with pytest.raises(symnmf.InputError, match=r"cannot be taken over by DLPack .no such type."):
        symnmf.factorize(Other(), 2)

"""What a run gives back: history, stopping, callbacks, interrupts, certificates, files."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import symnmf
from conftest import synthetic_problem
from strict_backend import StrictMatrix
from symnmf.errors import ConvergenceWarning, InputError
from symnmf.run.result import History


@pytest.fixture(scope="module")
def X():
    return synthetic_problem(40, 4, 0.1, seed=0)


def test_history_has_the_columns_and_one_row_per_record(X):
    result = symnmf.factorize(X, 4, random_state=0, tol=0, max_iter=25, record_every=10)
    assert History.columns == (
        "iteration", "seconds", "objective", "value", "error", "coupling", "consensus",
        "stationarity",
    )  # fmt: skip
    assert result.history["iteration"].tolist() == [0, 10, 20, 25]
    assert result.history["Iteration"].dtype == np.int64  # capitals do not matter
    assert (np.diff(result.history["seconds"]) > 0).all()
    assert result.history["error"][-1] == result.error
    frame = pd.DataFrame(dict(result.history))
    assert list(frame.columns) == list(History.columns)
    assert len(frame) == len(result.history) == 4
    with pytest.raises(InputError, match="did you mean 'error'"):
        result.history["eror"]


def test_converged_means_stationary_and_agreed(X):
    result = symnmf.factorize(X, 4, solver="a-symhals", random_state=0, tol=1e-6, max_iter=20_000)
    assert result.status == "converged"
    assert result.history["stationarity"][-1] <= 1e-6
    assert np.linalg.norm(result.U - result.V) <= 1e-6 * np.linalg.norm(result.V)
    slope = 2 * (result.U @ (result.U.T @ result.U) - X @ result.U)
    step = 1 / np.linalg.norm(X)
    residual = np.linalg.norm(result.U - np.maximum(result.U - step * slope, 0)) / step
    reference = 0.1 * np.linalg.norm(X) * np.linalg.norm(result.U)
    assert residual / reference == pytest.approx(result.history["stationarity"][-1], rel=1e-3)


def test_limits_are_named_and_a_warning_says_what_to_do(X):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert symnmf.factorize(X, 4, random_state=0, max_iter=3).status == "max_iter"
    assert symnmf.factorize(X, 4, random_state=0, max_iter=3, tol=0).n_iter == 3


def test_a_huge_start_does_not_make_the_tolerance_a_gift(X):
    U0 = 1e6 * np.random.default_rng(0).random((40, 4))
    with pytest.warns(ConvergenceWarning):
        result = symnmf.factorize(X, 4, init=U0, max_iter=3, solver="a-symhals")
    assert result.status == "max_iter"


def test_callback_reads_the_state_and_can_stop(X):
    seen = []

    def stop_at_seven(now):
        seen.append(now.iteration)
        assert now.U.shape == (40, 4)
        with pytest.raises(ValueError, match="read-only"):
            now.U[0, 0] = 1.0
        return now.iteration == 7

    start = {"init": "random", "random_state": 0}
    result = symnmf.factorize(X, 4, **start, callback=stop_at_seven)
    assert result.status == "stopped"
    assert seen == list(range(8))
    assert result.n_iter == 7


def test_ctrl_c_returns_what_was_reached(X):
    def interrupt(now):
        if now.iteration == 5:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = symnmf.factorize(X, 4, random_state=0, tol=0, callback=interrupt)
    assert result.status == "stopped"
    assert 5 <= result.n_iter <= 6
    assert signal.getsignal(signal.SIGINT) is before


def test_same_seed_same_bits_and_threads_agree():
    X = synthetic_problem(700, 4, 0.1, seed=2)
    runs = [
        symnmf.factorize(X, 30, random_state=0, tol=0, max_iter=10, n_jobs=jobs).U
        for jobs in (2, 2, 1)
    ]
    assert np.array_equal(runs[0], runs[1])
    np.testing.assert_allclose(runs[0], runs[2], rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore::symnmf.errors.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "a-symhals"])
def test_certificate_knows_what_float32_can_show(X, solver):
    X = X.astype(np.float32)
    for seed in range(4):
        result = symnmf.factorize(
            X, 4, solver=solver, init="scaled-random", random_state=seed, tol=1e-7, max_iter=3000
        )
        certificate = result.certificate(X)
        assert certificate.monotone
        text = str(certificate)
        assert ("allows no less" in text) == (
            certificate.at_rounding and certificate.stationarity > certificate.tol
        )


def test_going_on_from_float32_is_no_rise_of_the_objective():
    A = symnmf.graphs.build(load_digits().data)
    certificate = symnmf.factorize(A, 10, random_state=0).certificate()
    assert certificate.certified
    assert certificate.monotone


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_certificate_says_yes_to_a_converged_run(X, kind):
    X = kind(X)
    result = symnmf.factorize(X, 4, solver="a-symhals", random_state=0, tol=1e-6, max_iter=20_000)
    certificate = result.certificate(X)
    assert certificate.certified
    assert certificate.verdict.startswith("Certified")
    assert certificate.monotone
    dense = X.toarray() if sp.issparse(X) else X
    mixed = result.U @ result.V.T
    assert certificate.curvature == pytest.approx(
        np.linalg.eigvalsh((mixed + mixed.T) / 2 - dense)[-1], rel=1e-6
    )
    for text in ("Theorem 1'", "consensus", "stationarity", "by its residual"):
        assert text in str(certificate)
    assert "Theorem 3" not in str(certificate)  # lambda was not constant


def test_certificate_says_no_to_an_early_stop_and_to_a_tiny_coupling(X):
    early = symnmf.factorize(X, 4, solver="a-symhals", random_state=0, tol=0, max_iter=3)
    assert not early.certificate(X).certified
    assert "not stationary" in early.certificate(X).verdict
    # an indefinite X and no pull: the two factors settle apart
    graph = 1.0 - np.eye(6)
    apart = symnmf.factorize(
        graph, 2, solver="a-symhals", coupling=1e-8, random_state=0, tol=0, max_iter=3000
    )
    certificate = apart.certificate(graph)
    assert certificate.penalized_stationarity < 1e-4
    assert not certificate.certified
    assert "U and V differ" in certificate.verdict
    assert not certificate.theorem1


def test_certificate_refuses_another_matrix(X):
    result = symnmf.factorize(X, 4, random_state=0, tol=0, max_iter=2)
    with pytest.raises(InputError, match="40"):
        result.certificate(np.eye(3))


def test_results_survive_saving_and_pickling(X, tmp_path):
    result = symnmf.factorize(X, 4, random_state=0, tol=0, max_iter=4)
    result.save(tmp_path / "run.npz")
    for again in (symnmf.Result.load(tmp_path / "run.npz"), pickle.loads(pickle.dumps(result))):
        assert np.array_equal(again.U, result.U)
        assert np.array_equal(again.history.to_array(), result.history.to_array())
        assert (again.status, again.n_iter, again.error) == ("max_iter", 4, result.error)
        assert repr(again.certificate(X)) == repr(result.certificate(X))  # NaN is not NaN


def test_loading_something_else_is_one_sentence(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("other.npz", "text.npz", "missing.npz"):
        with pytest.raises(InputError, match=name):
            symnmf.Result.load(tmp_path / name)


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_a_run_on_a_foreign_array_takes_every_path(tol, tmp_path):
    """More entries of U than a cache holds, through float32, callbacks, checkpoint and result."""
    X = synthetic_problem(1400, 3, 0.1, seed=0)
    seen = []
    result = symnmf.factorize(
        StrictMatrix(X),
        3,
        tol=tol,
        init="scaled-random",
        random_state=0,
        callback=lambda now: seen.append(float(now.U.sum())),
        checkpoint=tmp_path / "run.npz",
    )
    assert result.status == "converged"
    assert result.U.dtype == np.float64
    assert len(seen) == len(result.history)
    error = np.linalg.norm(X - result.U @ result.U.T) ** 2 / np.linalg.norm(X) ** 2
    assert result.error == pytest.approx(error, rel=1e-9)
    assert result.certificate().certified

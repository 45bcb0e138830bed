"""Entry points by options: one default, one check and one description for each."""

from __future__ import annotations

import inspect
import pickle

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_iris

import symnmf
from symnmf.options import (
    OPTIONS,
    REQUIRED,
    ClusterOptions,
    CommunityOptions,
    ProblemOptions,
    in_shell,
    names_in,
)

CLUB = nx.karate_club_graph()
X = nx.to_numpy_array(CLUB, weight=None)


class Seen(Exception):
    """Data were looked at."""


class Watched:
    """Data that may not be looked at before options are checked."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise Seen

    @property
    def shape(self) -> tuple[int, int]:
        raise Seen


#: Each entry point, what it takes by ``**``, and a call of it.
ENTRIES = {
    "factorize": (symnmf.factorize, ProblemOptions, lambda X, **o: symnmf.factorize(X, 2, **o)),
    "Problem": (symnmf.Problem, None, lambda X, **o: symnmf.Problem(X, **o)),
    "communities": (
        symnmf.communities,
        ClusterOptions,
        lambda X, **o: symnmf.communities(X, o.pop("n_clusters", 2), **o),
    ),
    "SymNMF": (symnmf.SymNMF, None, lambda X, **o: symnmf.SymNMF(**o).fit(X)),
    "compare": (symnmf.compare, None, lambda X, **o: symnmf.compare(X, 2, ["pgd"], **o)),
    "consensus": (symnmf.consensus, None, lambda X, **o: symnmf.consensus(X, 2, **o)),
}
NOT_OPTIONS = {"X", "G", "solvers", "options", "problem", "rank"}


def options_of(name):
    function, more, _ = ENTRIES[name]
    named = [each for each in inspect.signature(function).parameters if each not in NOT_OPTIONS]
    return [*named, *(names_in(more) if more else ())]


PAIRS = [(entry, option) for entry in ENTRIES for option in options_of(entry)]


@pytest.mark.parametrize(("entry", "option"), PAIRS)
def test_an_option_is_declared_has_one_default_and_is_described(entry, option):
    function = ENTRIES[entry][0]
    declared = OPTIONS[option]
    parameter = inspect.signature(function).parameters.get(option)
    if parameter is not None and parameter.default is not inspect.Parameter.empty:
        assert parameter.default == declared.default
    if declared.default is not REQUIRED:
        assert any(kind.holds(declared.default) for kind in declared.kinds)
    assert declared.text.endswith(".")
    if entry in ("factorize", "communities", "SymNMF", "compare") and parameter is not None:
        assert declared.text in function.__doc__


@pytest.mark.parametrize(("entry", "option"), PAIRS)
def test_a_wrong_value_is_refused_by_name_before_data_are_looked_at(entry, option):
    with pytest.raises(symnmf.InputError, match=rf"\b{option} must be .*, got") as refused:
        ENTRIES[entry][2](Watched(), **{option: object()})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("seed", "random_state"),
        ("tolerance", ""),
        ("k", "n_clusters or rank"),
        ("n_components", "n_clusters or rank"),
        ("metric", "affinity"),
        ("ndevice", "device"),
    ],
)
def test_an_unknown_name_is_refused_with_what_may_be_meant(entry, name, meant):
    with pytest.raises(TypeError, match=f"^{entry} has no argument '{name}'") as refused:
        ENTRIES[entry][2](X, **{name: 3})
    assert isinstance(refused.value, symnmf.InputError)
    takes = {*options_of(entry), *inspect.signature(ENTRIES[entry][0]).parameters}
    expected = [word for word in meant.split(" or ") if word in takes]
    if expected:
        assert any(
            f"did you mean {word}" in str(refused.value).replace("'", "") for word in expected
        )


def test_the_shell_has_the_same_sentences():
    assert in_shell("n_clusters must be at least 1.") == "-k must be at least 1."
    assert in_shell("use normalize=False, or tol=0.1") == "use --no-normalize, or --tol 0.1"
    assert (
        in_shell("which takes the weight of each edge.") == "which takes the weight of each edge."
    )
    assert len({option.shell for option in OPTIONS.values()}) == len(OPTIONS)


def test_few_parameters_stand_in_signatures():
    assert len(inspect.signature(symnmf.SymNMF).parameters) == 24
    named = [p for p in inspect.signature(symnmf.factorize).parameters.values() if p.kind != 4]
    assert len(named) <= 16
    named = [p for p in inspect.signature(symnmf.communities).parameters.values() if p.kind != 4]
    assert len(named) <= 2 + 8
    assert {*names_in(CommunityOptions)} <= {*OPTIONS}


def test_problem_options_reach_the_problem_from_everywhere():
    mask = np.ones(X.shape, dtype=bool)
    mask[0, 1] = mask[1, 0] = False
    direct = symnmf.factorize(X, 2, mask=mask, ridge=0.1, random_state=0)
    posed = symnmf.factorize(symnmf.Problem(X, mask=mask, ridge=0.1), 2, random_state=0)
    np.testing.assert_array_equal(direct.U, posed.U)
    plain = symnmf.factorize(X, 2, ridge=0.1, random_state=0)
    assert not np.allclose(plain.U, direct.U)


def test_a_pickled_model_judges_itself_alike():
    model = symnmf.SymNMF(3, random_state=np.random.default_rng(0)).fit(load_iris().data)
    again = pickle.loads(pickle.dumps(model))
    assert again.quality_.verdict.reason == model.quality_.verdict.reason


def test_probabilities_are_shares_of_the_own_cluster():
    model = symnmf.SymNMF(3, random_state=0).fit(load_iris().data)
    U, labels = model.embedding_, model.labels_
    expected = U[np.arange(150), labels] / U.sum(axis=1)
    np.testing.assert_allclose(model.probabilities_, expected)
    A = X.copy()
    A[5] = A[:, 5] = 0
    lonely = symnmf.SymNMF(2, affinity="precomputed", random_state=0).fit(A)
    assert lonely.probabilities_[5] == 0.0
    assert lonely.labels_[5] == -1

"""``symnmf.scanpy`` does as scanpy's own tools do."""

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf.scanpy
from extras import optional
from symnmf import graphs, metrics
from symnmf.errors import InputError

anndata, pd = optional("anndata"), optional("pandas")


@pytest.fixture
def adata():
    """Two tissues; the first has two kinds of cells."""
    kinds = np.repeat([0, 1, 2], 25)
    X = np.random.default_rng(0).normal(size=(75, 4)) + 4 * kinds[:, None]
    made = anndata.AnnData(X, obs=pd.DataFrame(index=[f"c{i}" for i in range(75)]))
    made.obs["tissue"] = pd.Categorical(np.where(kinds < 2, "blood", "skin"))
    graph = graphs.build(X, normalize=False, n_neighbors=12)
    made.obsp["connectivities"] = sp.csr_matrix(graph)
    made.obs["kind"] = kinds
    return made


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_restrict_to_clusters_some_cells(adata):
    symnmf.scanpy.cluster(adata, 2, restrict_to=("tissue", ["blood"]))
    found = adata.obs["symnmf_R"]
    assert list(found.cat.categories) == ["blood,0", "blood,1", "skin"]
    inside = (adata.obs["tissue"] == "blood").to_numpy()
    assert (found[~inside] == "skin").all()
    assert metrics.clustering_accuracy(adata.obs["kind"][inside], found[inside].cat.codes) > 0.9
    U = adata.obsm["X_symnmf_R"]
    assert np.isnan(U[~inside]).all()
    assert np.isfinite(U[inside]).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_colours_of_an_earlier_clustering_go(adata):
    adata.uns["symnmf_colors"] = ["#000000"] * 9
    symnmf.scanpy.cluster(adata, 3)
    assert "symnmf_colors" not in adata.uns
    assert list(adata.obs["symnmf"].cat.categories) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("restrict_to", "said"),
    [
        ("tissue", "must be a pair"),
        (("organ", ["blood"]), "'organ', which is not in adata.obs"),
        (("tissue", ["bone"]), r"names \['bone'\], but"),
    ],
)
def test_refusals(adata, restrict_to, said):
    with pytest.raises(InputError, match=said):
        symnmf.scanpy.cluster(adata, 2, restrict_to=restrict_to)

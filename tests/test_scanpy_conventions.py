"""``symnmf.scanpy`` does as scanpy's own tools do."""

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf.scanpy
from extras import optional
from symnmf import graphs, metrics

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
def test_clusters_and_the_factor_agree(adata):
    symnmf.scanpy.cluster(adata, 3, key_added="kinds")
    labels = adata.obs["kinds"].cat.codes
    assert metrics.clustering_accuracy(adata.obs["kind"], labels) > 0.9
    np.testing.assert_array_equal(adata.obsm["X_kinds"].argmax(axis=1), labels)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_colours_of_an_earlier_clustering_go(adata):
    adata.uns["symnmf_colors"] = ["#000000"] * 9
    symnmf.scanpy.cluster(adata, 3)
    assert "symnmf_colors" not in adata.uns
    assert list(adata.obs["symnmf"].cat.categories) == ["0", "1", "2"]

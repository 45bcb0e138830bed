"""Data of the paper and of the community-detection literature, each by one call.

The files hold arrays only and are not part of the package (their licences are unclear).  They
are looked for in ``folder=``, else in ``$SYMNMF_DATA``, else in ``shared/data`` beside the
current folder or beside the repository, else where :func:`fetch` keeps what it downloads; a file
whose content is not the expected one is refused. :func:`available` lists what is there.
"""

from symnmf.datasets.fetching import fetch
from symnmf.datasets.loading import (
    Dataset,
    Entry,
    available,
    load,
    load_citeseer,
    load_coil20,
    load_com_dblp,
    load_cora,
    load_digits,
    load_dolphins,
    load_ego_circles,
    load_ego_facebook,
    load_email_eu_core,
    load_football,
    load_karate,
    load_mnist,
    load_newsgroups,
    load_orl,
    load_polbooks,
    load_tdt2,
    synthetic,
)

__all__ = [
    "Dataset",
    "Entry",
    "available",
    "fetch",
    "load",
    "load_citeseer",
    "load_coil20",
    "load_com_dblp",
    "load_cora",
    "load_digits",
    "load_dolphins",
    "load_ego_circles",
    "load_ego_facebook",
    "load_email_eu_core",
    "load_football",
    "load_karate",
    "load_mnist",
    "load_newsgroups",
    "load_orl",
    "load_polbooks",
    "load_tdt2",
    "synthetic",
]

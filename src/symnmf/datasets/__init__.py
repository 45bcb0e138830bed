"""Data of the paper and of the community-detection literature, by name.

The files hold arrays only and are not part of the package (their licences are unclear). They are
looked for in ``folder=``, else in ``$SYMNMF_DATA``, else in ``shared/data`` beside the current
folder or beside the repository, else where :func:`fetch` keeps what it downloads. A file whose
content is not the expected one is refused. :func:`available` lists what there is.
"""

from symnmf.datasets.fetching import fetch
from symnmf.datasets.loading import Dataset as Dataset
from symnmf.datasets.loading import Entry as Entry
from symnmf.datasets.loading import available, load, synthetic

__all__ = ["available", "fetch", "load", "synthetic"]

"""From data to clusters: the one way that all entry points take.

Data become similarities, these a :class:`symnmf.Problem`, a search over starts factorizes it, and
what it finds is numbered and judged. :class:`symnmf.SymNMF`, :func:`symnmf.communities`,
:mod:`symnmf.scanpy` and ``symnmf cluster`` only say what the data are and what is done with the
clusters.
"""

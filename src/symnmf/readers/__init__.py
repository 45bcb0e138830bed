"""Read data files. No file is trusted.

==================  ===============================================================================
Ending              What it holds
==================  ===============================================================================
.npy                one 2-D array of numbers
.npz                a scipy sparse matrix (csr, csc, coo), a graph (``edges`` (m, 2), optional
                    ``n``, ``weights``, ``node_names``), or one 2-D array (alone, or called
                    ``X``, ``adjacency`` or ``affinity``); ``y`` holds labels in all three
.csv .tsv           numbers, with an optional header; a first column of text holds row names;
                    commas, semicolons or tabs separate cells
.parquet            the same (extra ``tables``)
.mtx                Matrix Market, coordinate or array, real, integer or pattern, general or
                    symmetric
.edges .edgelist    one edge per line, ``u v`` or ``u v weight``, separated by spaces, tabs or
.el .txt .ncol      commas; lines that start with ``#`` or ``%`` are comments; a .csv or .tsv
                    that begins with ``source,target`` is one too, and so is a .parquet with such
                    columns; a column called ``weight``, or the third of three, holds the weights
.hyperedges         one hyperedge per line, its nodes separated by spaces, tabs or commas
.graphml .gml       a graph, parsed by networkx
.net                a graph of Pajek; arcs are read as edges
.json               a network of VOSviewer
.h5ad               the neighbour graph of an AnnData if it has one, else its PCA or X (h5py)
.cool .mcool        contacts of Hi-C, balanced (h5py); ``file.mcool::resolutions/10000`` names one
                    of several resolutions
==================  ===============================================================================

Each may also end in ``.gz``. For all of them:

* Nothing is unpickled, and nothing in a file is evaluated.
* No memory is allocated because of a header alone: the declared size of an array is checked first,
  and only the bytes that are there are read; a sparse matrix may have ``FREE_DIMENSION`` rows or
  columns, or ``DIMENSION_PER_ENTRY`` for each entry it stores, whichever is more.
* A file may hold ``max_bytes`` after decompression; beyond ``FREE_BYTES`` a compressed file may
  also not grow by more than a factor ``max_ratio``.
* Text is UTF-8 (a byte order mark and CRLF are fine), without control characters, with lines of
  at most ``MAX_LINE`` bytes. NaN and infinities are refused,
  except NaN in a dense matrix that is read with ``missing="nan"``.
* If anything is wrong, you get one :class:`symnmf.errors.InputError`, a sentence that names the
  file and, if possible, the line.
"""

from symnmf.readers.choosing import read_matrix
from symnmf.readers.labels import read_labels, read_named_labels
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import FREE_BYTES, MAX_BYTES, MAX_RATIO
from symnmf.readers.sparse_parts import DIMENSION_PER_ENTRY, FREE_DIMENSION
from symnmf.readers.text import MAX_LINE
from symnmf.readers.writing import write_table

__all__ = [
    "DIMENSION_PER_ENTRY",
    "FREE_BYTES",
    "FREE_DIMENSION",
    "MAX_BYTES",
    "MAX_LINE",
    "MAX_RATIO",
    "MatrixFile",
    "read_labels",
    "read_matrix",
    "read_named_labels",
    "write_table",
]

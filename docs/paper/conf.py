"""Sphinx: `make paper` sets the pages of docs/theory as one PDF, with LaTeX."""

from __future__ import annotations

import symnmf

project = "symnmf"
author = "The symnmf developers"
version = release = symnmf.__version__
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
include_patterns = ["theory/*"]
root_doc = "theory/index"
# pages of the site that the text links to and the paper does not hold
suppress_warnings = ["myst.xref_missing", "toc.excluded", "toc.not_readable", "toc.not_included"]

TITLE = "Symmetric nonnegative matrix factorization: how small a coupling, and how fast without one"
latex_documents = [(root_doc, "theory.tex", TITLE, author, "howto")]
latex_elements = {
    "papersize": "a4paper",
    "pointsize": "11pt",
    "sphinxsetup": "hmargin=2.3cm, vmargin=2.4cm, TitleColor={rgb}{0,0,0}",
    "figure_align": "htbp",
    "preamble": r"\setcounter{secnumdepth}{1}\setcounter{tocdepth}{1}",
    "printindex": "",
}
latex_domain_indices = False
latex_show_urls = "no"

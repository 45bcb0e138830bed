"""Sphinx: `make docs` builds the site from these pages, the docstrings and the gallery."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import matplotlib.image as mpimg
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.scrapers import figure_rst

import symnmf

os.environ.setdefault("SYMNMF_DATA", os.devnull)  # examples use data that every clone has

project = "symnmf"
author = "The symnmf developers"
copyright = author
version = release = symnmf.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.json"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold a function
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(abc|collections|numpy|sklearn|symnmf\.(storage|solvers)\.\w+)\..*")
]

# Markdown -------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block", "dollarmath"]
myst_heading_anchors = 3

# Reference ------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc's Parameters say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Gallery --------------------------------------------------------------------------------------


def _figures(block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Save the figure of a block: the variable ``figure``, which pyplot does not manage."""
    figure = variables["example_globals"].pop("figure", None)
    if figure is None:
        return ""
    path = next(variables["image_path_iterator"])
    figure.savefig(path, dpi=120, bbox_inches="tight", facecolor="white")
    return figure_rst([path], settings["src_dir"])


warnings.filterwarnings("ignore", message=".*is non-interactive, and thus cannot be shown.*")
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,
    "doc_module": ("symnmf",),
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 10,  # an example that takes longer than it may is named in the log
    "abort_on_example_error": True,
    "image_scrapers": (_figures,),
    "reset_modules": ("matplotlib",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
}

#: Where the thumbnail of a wide picture is cut out: 0 is its left end, 1 its right end.
CUT = {"plot_00_idea": 0.78, "plot_11_hyperedges": 1.0}


def _cut_thumbnails(app: Any) -> None:
    """Cut wide pictures to 3:2, since nothing can be recognised in a whole one at that size."""
    images = Path(app.srcdir) / "gallery" / "images"
    for path in images.glob("sphx_glr_plot_*_001.png"):
        name = path.stem.removeprefix("sphx_glr_").removesuffix("_001")
        picture = mpimg.imread(path)
        height, width = picture.shape[:2]
        wanted = min(width, height * 3 // 2)
        left = int((width - wanted) * CUT.get(name, 0.0))
        thumbnail = images / "thumb" / f"sphx_glr_{name}_thumb.png"
        mpimg.imsave(thumbnail, picture[:, left : left + wanted])


# Pages ----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "symnmf"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "symnmf", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 5,  # more would wrap on a laptop
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
#: Pages without pages below them have nothing to show at the side.
html_sidebars = {
    page: []
    for page in ("index", "tutorial", "evidence", "architecture", "concepts/*", "development/*")
}


# Formulas: MathML, which browsers draw themselves, so that pages need no script from elsewhere.


def _formula(writer: Any, node: nodes.Element, block: bool) -> None:
    tex = re.sub(r"(\\t?frac)(\d)(\d)", r"\1{\2}{\3}", node.astext())
    markup = tex2mathml(tex.replace(r"\dots", r"\ldots"), as_block=block)
    writer.body.append(f"<div class='formula'>{markup}</div>" if block else markup)
    raise nodes.SkipNode


html_math_renderer = "mathml"


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn writes for metadata routing: it refers to pages of its own."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app: Any) -> None:
    app.connect("builder-inited", _cut_thumbnails, priority=900)  # after the gallery is built
    app.connect("autodoc-skip-member", _skip)
    app.add_html_math_renderer(
        "mathml",
        (lambda writer, node: _formula(writer, node, False), None),
        (lambda writer, node: _formula(writer, node, True), None),
    )

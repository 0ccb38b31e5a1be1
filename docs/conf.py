from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import imcc

project = "imcc"
author = "The imcc developers"
copyright = "2026, The imcc developers"
version = release = imcc.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
autosummary_generate = True
numpydoc_show_class_members = False
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "imcc"
html_sidebars = {"**": []}
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}


def inline_formula(self, node):
    self.body.append(convert(node.astext()))
    raise SkipNode


def displayed_formula(self, node):
    self.body.append(f"<p>{convert(node.astext(), display='block')}</p>")
    raise SkipNode


def setup(app):
    # Formulas as MathML, which browsers show by themselves: the pages need no network.
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))

import imcc

project = "imcc"
author = "The imcc developers"
copyright = "2026, The imcc developers"
version = release = imcc.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
autosummary_generate = True
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "imcc"
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}

import re
import sys
import warnings
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

import imcc

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "imcc"
author = "The imcc developers"
copyright = "2026, The imcc developers"
version = release = imcc.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "_ext", "_inventories", "auto_examples/**/*.ipynb"]
suppress_warnings = ["config.cache"]
# The right-hand contents show the sections of a page, the left-hand menu the pages.
toc_object_entries = False

# The names of other projects that the pages link to.  The inventories are in the repository
# (docs/_inventories/make.py), so that a build needs no network.
_INVENTORIES = DOCS / "_inventories"
intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", str(_INVENTORIES / "python.inv")),
    "numpy": ("https://numpy.org/doc/stable/", str(_INVENTORIES / "numpy.inv")),
    "scipy": ("https://docs.scipy.org/doc/scipy/", str(_INVENTORIES / "scipy.inv")),
    "sklearn": ("https://scikit-learn.org/stable/", str(_INVENTORIES / "sklearn.inv")),
    "pandas": ("https://pandas.pydata.org/docs/", str(_INVENTORIES / "pandas.inv")),
}

# Prompts are not copied, and of console blocks the commands only.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": str(DOCS.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("imcc",),
    "reference_url": {"imcc": None},
    "image_scrapers": ("gallery.light_and_dark",),
    "reset_modules": ("matplotlib", "gallery.use_style"),
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 2,
    "download_all_examples": False,
    "write_computation_times": False,
    "copyfile_regex": r"",
}
# An example that warns is an example to correct.
warnings.filterwarnings("ignore", message=".*non-interactive.*")

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "imcc"
html_static_path = ["_static"]
html_css_files = ["imcc.css"]
html_show_sourcelink = False
html_sidebars = {"index": []}  # elsewhere the menu, docs/_templates/sidebar-nav-bs.html
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_persistent": ["search-button-field"],
    "back_to_top_button": True,
}


def reference_groups():
    """Return the headings of api.md, each with the pages of the names below it."""
    groups, module, listing, before = [], "", False, ""
    for line in (DOCS / "api.md").read_text("utf-8").splitlines():
        if found := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
            module = found[1]
        elif re.fullmatch(r"-{3,}", line):
            groups.append((before, []))
        elif line.startswith(".. autosummary::"):
            listing = True
            continue
        elif listing and (found := re.match(r"   ([A-Za-z_]\w*)$", line)):
            groups[-1][1].append(f"api/generated/{module}.{found[1]}")
        if line and not line.startswith("   "):
            listing = False
        before = line
    return groups


html_context = {"default_mode": "auto", "reference_groups": reference_groups()}


def inline_formula(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed_formula(self, node):
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def trim_code(_app, doctree):
    """Drop the empty line at the end of a code block, which doctest needs and a reader does not."""
    for node in doctree.findall(nodes.literal_block):
        if node.rawsource == node.astext():  # else it has markup, such as a parsed literal
            node.rawsource = node.rawsource.rstrip()
            node.children = [nodes.Text(node.rawsource)]


def setup(app):
    app.connect("doctree-read", trim_code)
    # Formulas as MathML, which browsers show by themselves: the pages need no network.
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))

"""Sphinx settings of the site; `make docs` builds it into build/docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

import regard

project = "regard"
author = "the regard authors"
project_copyright = "the regard authors, Apache-2.0"
version = release = regard.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "public_names",
    "docstrings",
    "name_links",
    "command_line",
    "repository_pages",
]
exclude_patterns = ["extensions"]

myst_heading_anchors = 3

highlight_language = "none"
default_role = "code-or-link"
smartquotes_action = "D"  # dashes only: quotation marks are part of what is typed
add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autosummary_generate = False
napoleon_use_ivar = True  # fields as a list in the class, not as entries of their own
napoleon_use_rtype = False
napoleon_use_admonition_for_examples = False

html_theme = "furo"
html_title = f"regard {release}"
html_favicon = "../src/regard/explorer/static/icon.svg"
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

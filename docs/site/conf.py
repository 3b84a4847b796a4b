"""Sphinx's settings for the site; build.py copies this file next to the pages."""

import vicinal
from sphinx.domains.cpp import CPPDomain

import python_reference

project = "vicinal"
author = "The vicinal authors"
version = release = vicinal.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"

# Anchors of headings, as code hosts make them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

default_role = "py:obj"  # `knn` in a docstring is a link where there is such a function, and code elsewhere
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# Shown by their names, not by what they stand for.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Float64Array", "Int32Array", "Int64Array", "NDArray")}
cpp_maximum_signature_line_length = 100
cpp_id_attributes = ["VICINAL_API"]
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"vicinal {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = True
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0969da", "color-brand-content": "#0969da"},
    "dark_css_variables": {"color-brand-primary": "#4493f8", "color-brand-content": "#4493f8"},
    "top_of_page_buttons": [],
}


class Domain(CPPDomain):
    """C++ as Sphinx has it; a search does not find the parameters of functions."""

    def get_objects(self):
        return (entry for entry in super().get_objects() if entry[2] != "functionParam")


def setup(app):
    app.add_domain(Domain, override=True)
    app.connect("autodoc-process-docstring", python_reference.process_docstring)
    app.connect("autodoc-process-signature", python_reference.process_signature)

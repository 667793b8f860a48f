"""Printers: formulas as plain text, LaTeX, Python, C, Markdown and a web page.

`sympy_out`, for SymPy, is imported where it is used: SymPy is heavy.
"""

from __future__ import annotations

from linkwright.symbolic.printing.code_printers import c_source, operations, python_module
from linkwright.symbolic.printing.code_statements import Operations
from linkwright.symbolic.printing.equation_page import html_page, markdown_page
from linkwright.symbolic.printing.formula_writer import text
from linkwright.symbolic.printing.latex import latex_block, latex_document
from linkwright.symbolic.printing.printed_sheet import Sheet

#: The printers of a whole file, by the method of `Equations` that gives its text.
PRINTERS = {
    "latex": latex_document,
    "html": html_page,
    "markdown": markdown_page,
    "python": python_module,
    "c": c_source,
}

__all__ = [
    "PRINTERS",
    "Operations",
    "Sheet",
    "c_source",
    "html_page",
    "latex_block",
    "latex_document",
    "markdown_page",
    "operations",
    "python_module",
    "text",
]

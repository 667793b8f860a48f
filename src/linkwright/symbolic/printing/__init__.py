"""Printers: formulas as plain text, SymPy, LaTeX, Python, C, Markdown and a web page."""

from __future__ import annotations

from linkwright.symbolic.printing.c import c_source
from linkwright.symbolic.printing.count import Operations, operations
from linkwright.symbolic.printing.latex import latex_block, latex_document, latex_formula
from linkwright.symbolic.printing.plain import text
from linkwright.symbolic.printing.python import python_module
from linkwright.symbolic.printing.sheet import Sheet
from linkwright.symbolic.printing.sympy_out import to_sympy, to_sympy_block

__all__ = [
    "Operations",
    "Sheet",
    "c_source",
    "latex_block",
    "latex_document",
    "latex_formula",
    "operations",
    "python_module",
    "text",
    "to_sympy",
    "to_sympy_block",
]

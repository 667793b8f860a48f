"""Functions of mechanisms as files that stand alone: C, CUDA, CasADi, JAX and SymPy, each with README and test."""

from __future__ import annotations

from linkwright.exports.export import LANGUAGES, Exported, export

__all__ = ["LANGUAGES", "Exported", "export"]

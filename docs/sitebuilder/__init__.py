"""Builds the static site of the documentation: pages, executed examples and notebooks; `make docs` runs it."""

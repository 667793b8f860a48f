"""Dynamics: the table of a mechanism's functions."""

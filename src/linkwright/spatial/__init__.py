"""Rotations, twists, wrenches and inertias in NumPy syntax, over floats and recorded scalars."""

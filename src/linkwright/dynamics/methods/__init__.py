"""Forward and inverse dynamics: one algorithm a file."""

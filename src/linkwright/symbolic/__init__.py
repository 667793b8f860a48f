"""Closed-form equations of motion: exact polynomials in cosines, sines, shifts and parameters, and how they print."""

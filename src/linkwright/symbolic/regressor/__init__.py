"""The regressor as exact polynomials, and the base parameters that it shows."""

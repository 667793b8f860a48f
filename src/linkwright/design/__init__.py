"""Design: derivatives of a mechanism's outputs with respect to its parameters, and optimisation with them."""

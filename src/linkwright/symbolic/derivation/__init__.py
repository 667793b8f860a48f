"""From a description to the polynomials M, h and g: named numbers, elementary links, the mass matrix and its slopes."""

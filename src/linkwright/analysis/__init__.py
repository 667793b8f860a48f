"""Analyses that a model asks for: prescribed motion, motion under forces, equilibrium, and the forces of each."""

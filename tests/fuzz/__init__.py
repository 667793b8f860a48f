"""Inputs that nobody wrote on purpose, for everything in Linkwright that reads a file or a text.

`make fuzz SECONDS=60 SEED=1`; README.md here says what is tried and what was found.
"""

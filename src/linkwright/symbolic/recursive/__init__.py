"""The recursive form: tapes of the recursions as named steps, written as formulas and as code."""

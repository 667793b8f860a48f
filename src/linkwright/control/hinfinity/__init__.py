"""Linear systems as four matrices, their H∞ norms, and the design of controllers by H∞ synthesis."""

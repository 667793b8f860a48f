"""Exact formulas: plain data, their arithmetic, and the ring of polynomials that closed forms are derived over."""

"""The tape: record a function in NumPy syntax once, then differentiate, count and lower it."""

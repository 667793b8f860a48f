"""Programs run statement by statement: over NumPy arrays, and in other libraries' algebras."""

"""Linear models of the closed forms, at a point or along any motion."""

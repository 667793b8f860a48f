"""Programs inside JAX: machine code that XLA calls on the CPU, its derivatives, and JAX's own operations elsewhere."""

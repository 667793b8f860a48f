"""How the steps of a recursion are run over the links of a tree: unrolled, rolled into loops, or in levels."""

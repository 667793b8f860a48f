"""Programs on a GPU: CUDA text with a thread a state or a thread an item, and the kernels that launch it."""

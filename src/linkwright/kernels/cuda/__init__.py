"""Programs on a GPU: CUDA text with a thread per state or a thread per item, and the kernels that launch it."""

"""Programs made callable: NumPy, LLVM, C-family text, CUDA, the call path, the cache, other tools' forms."""

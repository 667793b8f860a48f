"""Programs as LLVM text, and that text as machine code of this process."""

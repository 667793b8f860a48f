"""Programs as C text: what C99 and CUDA share, and the files of a C package."""

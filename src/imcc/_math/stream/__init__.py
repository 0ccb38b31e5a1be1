"""Training on rows that are read in chunks: files, iterators, memory-mapped arrays."""

"""Training on rows that are read in chunks: files, iterators, Dask collections."""

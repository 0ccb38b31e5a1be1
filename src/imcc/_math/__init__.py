"""The mathematics of a fit: arrays in, arrays or small records out."""

"""Common interface to NumPy, torch and CuPy; no other package uses torch and CuPy directly."""

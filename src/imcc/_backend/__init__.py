"""NumPy, torch and CuPy behind one interface; the only package that names them."""

"""The only package that knows what NumPy, torch and CuPy do in their own way."""

"""Utilities of all packages: checks, errors, optional packages, files and plain data."""

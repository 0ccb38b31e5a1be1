"""Exact cross-validated search over a grid of settings that share factorisations."""

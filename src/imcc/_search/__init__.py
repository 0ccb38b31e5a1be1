"""Cross-validated search over a grid of settings that share their factorisations."""

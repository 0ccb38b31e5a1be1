"""What all packages share: checks, optional packages, writing files, plain data."""

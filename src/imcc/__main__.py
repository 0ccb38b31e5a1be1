"""``python -m imcc``."""

from imcc.cli import main

if __name__ == "__main__":
    main()

"""``python -m imcc.cli``."""

from imcc.cli import main

if __name__ == "__main__":
    main()

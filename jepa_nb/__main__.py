"""Entry point of ``python -m jepa_nb``."""

from jepa_nb.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

"""`python -m hideaway` is the `hideaway` command."""

from hideaway.main import main

if __name__ == "__main__":
    raise SystemExit(main())

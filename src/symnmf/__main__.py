"""``python -m symnmf``: the command line."""

from symnmf.cli import main

if __name__ == "__main__":
    main()

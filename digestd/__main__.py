"""``python -m digestd``: the same as the command ``digestd``. Floor 5."""

from digestd.cli import main

if __name__ == "__main__":
    main()

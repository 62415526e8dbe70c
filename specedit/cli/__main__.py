"""`python -m specedit.cli`: the `specedit` command, where its script may not be on the path."""

from specedit.cli import main

if __name__ == "__main__":
    main(prog_name="specedit")

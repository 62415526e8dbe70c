"""`python -m specedit_lsp` is `specedit lsp`."""

from specedit.cli.lsp import command

if __name__ == "__main__":
    command(prog_name="specedit lsp")

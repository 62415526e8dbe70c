"""`python -m specedit_lsp` is `specedit lsp`."""

from specedit_lsp.server import main

if __name__ == "__main__":
    main()

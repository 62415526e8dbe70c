"""The language server: specedit for editors that speak the Language Server Protocol."""

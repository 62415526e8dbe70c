"""Sets of edits of our own, made by a command from pinned releases of permissively licensed packages.

Each set is one kind of edit that repeats: `specedit bench replay` counts what drafting makes of it.
"""

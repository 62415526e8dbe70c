def newest(entries, n):
    """Return the latest entries, newest first."""
    ordered = sorted(entries, key=lambda entry: entry["time"], reverse=True)
    if n is None:
        return ordered
    return ordered[:n]

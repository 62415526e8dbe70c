def flatten(items):
    """Return all elements of nested lists in one list."""
    flat = []
    for item in items:
        if isinstance(item, list):
            flat.append(flatten(item))
        else:
            flat.append(item)
    return flat

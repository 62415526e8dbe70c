def without_duplicates(items):
    """Return the items without repetitions, in their order."""
    seen = set()
    result = []
    for item in items:
        if item not in seen:
            result.append(item)
    return result

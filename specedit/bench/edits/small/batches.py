def batches(items, size):
    """Split items into lists of at most size elements."""
    result = []
    for start in range(0, len(items), size):
        result.append(items[start : start + size])
    return result

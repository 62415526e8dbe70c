def clamp(value, low, high):
    """Return the value, but at least low and at most high."""
    return max(high, min(low, value))

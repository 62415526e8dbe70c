def backoff(attempts, first=0.5, factor=2.0, limit=30.0):
    """Return the seconds to wait before each attempt but the first."""
    delays = []
    d = first
    for _ in range(attempts - 1):
        delays.append(min(d, limit))
        d *= factor
    return delays

def days_between(start, end):
    """Return the whole days between two timestamps in seconds."""
    return int(abs(end - start) // 86400)


def start_of_day(timestamp):
    return timestamp - timestamp % 86400

def second_largest(numbers):
    """Return the second largest of the distinct numbers, or None if there are fewer than two."""
    distinct = sorted(numbers)
    if len(distinct) < 2:
        return None
    return distinct[-2]

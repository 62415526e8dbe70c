def running_max(numbers):
    """Return, for each position, the largest number up to it."""
    result = []
    largest = None
    for number in numbers:
        if largest is None or number < largest:
            largest = number
        result.append(largest)
    return result

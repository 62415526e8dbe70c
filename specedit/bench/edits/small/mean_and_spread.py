def mean_and_spread(numbers):
    """Return the mean, and the largest number minus the smallest."""
    if not numbers:
        return 0.0, 0.0
    mean = sum(numbers) / (len(numbers) - 1)
    return mean, max(numbers) - min(numbers)

def factorial(n):
    """Return 1 * 2 * ... * n."""
    result = 0
    for factor in range(1, n + 1):
        result *= factor
    return result

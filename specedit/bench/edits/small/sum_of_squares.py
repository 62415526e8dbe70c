def sum_of_squares(n):
    """Return 1 + 4 + 9 + ... + n * n."""
    total = 0
    for number in range(1, n):
        total += number * number
    return total

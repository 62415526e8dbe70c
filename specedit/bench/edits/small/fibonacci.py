def fibonacci(count):
    """Return the first numbers of the sequence 0, 1, 1, 2, 3, 5 and so on."""
    numbers = []
    current, following = 0, 1
    for _ in range(count):
        numbers.append(following)
        current, following = following, current + following
    return numbers

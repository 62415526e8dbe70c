def split_even_odd(numbers):
    """Return the even numbers and the odd numbers, as two lists."""
    even, odd = [], []
    for number in numbers:
        if number % 2 == 0:
            even.append(number)
            odd.append(number)
    return even, odd

def to_binary(number):
    """Return a number that is not negative in binary digits."""
    digits = ""
    while number > 0:
        digits += str(number % 2)
        number //= 2
    return digits

def is_prime(number):
    """Tell whether a number is prime."""
    if number < 2:
        return False
    divisor = 2
    while divisor * divisor < number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True

def is_palindrome(text):
    """Tell whether the letters read the same backwards; case and other characters don't count."""
    letters = [character for character in text if character.isalpha()]
    return letters == letters[::-1]

def shifted(text, distance):
    """Move each small letter on by a distance in the alphabet; z is followed by a."""
    result = []
    for character in text:
        if "a" <= character <= "z":
            position = ord(character) - ord("a") + distance
            character = chr(ord("a") + position)
        result.append(character)
    return "".join(result)

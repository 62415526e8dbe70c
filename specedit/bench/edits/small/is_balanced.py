def is_balanced(text):
    """Tell whether each bracket that is opened is closed, and in the right order."""
    closing = {"(": ")", "[": "]", "{": "}"}
    expected = []
    for character in text:
        if character in closing:
            expected.append(closing[character])
        elif character in closing.values():
            if not expected or expected.pop() != character:
                return False
    return True

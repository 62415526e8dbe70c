def common_prefix(words):
    """Return the longest text that all words begin with."""
    if not words:
        return ""
    prefix = words[0]
    for word in words:
        while word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix

def parse_pairs(text):
    pairs = {}
    for line in text.split("\n"):
        key, _, value = line.partition("=")
        pairs[key.strip()] = value.strip()
    return pairs

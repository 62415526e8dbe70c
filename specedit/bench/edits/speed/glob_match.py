import re


def glob_to_regex(pattern):
    pieces = []
    for character in pattern:
        if character == "*":
            pieces.append("[^/]*")
        elif character == "?":
            pieces.append("[^/]")
        else:
            pieces.append(re.escape(character))
    return "".join(pieces)


def matching(paths, pattern, ignore_case=False):
    flags = re.IGNORECASE if ignore_case else 0
    compiled = re.compile(glob_to_regex(pattern), flags)
    return [path for path in paths if compiled.fullmatch(path)]

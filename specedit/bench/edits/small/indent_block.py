def indent_block(text):
    lines = []
    for line in text.split("\n"):
        if line:
            line = " " * 4 + line
        lines.append(line)
    return "\n".join(lines)

def log_message(level, source, text, line=None):
    place = source
    if line is not None:
        place = "{}:{}".format(source, line)
    return "[{}] {}: {}".format(level.upper(), place, text)

def chk(path):
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return name.startswith(".") and name not in (".", "..")


def visible(paths):
    return [path for path in paths if not chk(path)]

def read_port(environ, default=8080):
    value = environ.get("PORT")
    if value is None:
        return default
    return int(value)

def first_line(path):
    stream = open(path, encoding="utf-8")
    line = stream.readline()
    stream.close()
    return line.rstrip("\n")

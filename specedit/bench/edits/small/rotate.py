def rotate(matrix, clockwise=True):
    if clockwise:
        return [list(row) for row in zip(*matrix[::-1])]
    return [list(row) for row in zip(*matrix)][::-1]

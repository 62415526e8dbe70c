def transpose(matrix):
    """Return the matrix with rows and columns exchanged."""
    if not matrix:
        return []
    rows, columns = len(matrix), len(matrix[0])
    result = []
    for column in range(columns):
        result.append([matrix[column][row] for row in range(rows)])
    return result

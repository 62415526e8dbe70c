def selection_sort(items):
    """Return the items in ascending order."""
    result = list(items)
    for start in range(len(result)):
        smallest = start
        for index in range(start + 1, len(result)):
            if result[index] > result[smallest]:
                smallest = index
        result[start], result[smallest] = result[smallest], result[start]
    return result

def weighted_average(values, weights):
    tmp = 0.0
    norm = 0.0
    for value, weight in zip(values, weights):
        tmp += value * weight
        norm += weight
    if norm == 0:
        return 0.0
    return tmp / norm

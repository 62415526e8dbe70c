def leap_years(first, last):
    """Return the leap years from first to last, both included."""
    years = []
    for year in range(first, last):
        if year % 4 == 0 and (year % 100 == 0 or year % 400 == 0):
            years.append(year)
    return years

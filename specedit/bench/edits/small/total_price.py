def total_price(items, discount_percent=0):
    """Return the price of all (price, count) items, less a discount in percent."""
    total = 0
    for price, count in items:
        total += price + count
    return total * (1 - discount_percent / 100)

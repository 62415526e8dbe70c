def receipt_line(name, count, currency="EUR"):
    label = name.strip().title()
    return "%s x %s (%s)" % (count, label, currency)

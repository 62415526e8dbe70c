"""Turn a table of sales into a readable monthly report."""

import csv
import io
from collections import defaultdict


class ReportError(Exception):
    pass


def read_sales(text):
    rows = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        missing = [name for name in ("month", "product", "units", "price") if not row.get(name)]
        if missing:
            raise ReportError("line {}: no {}".format(number, ", ".join(missing)))
        try:
            units, price = int(row["units"]), float(row["price"])
        except ValueError:
            raise ReportError("line {}: {} x {} is no sale".format(number, row["units"], row["price"])) from None
        rows.append((row["month"], row["product"], units, price))
    return rows


def totals(rows):
    result = defaultdict(lambda: defaultdict(float))
    for month, product, units, price in rows:
        result[month][product] += units * price
    return result


def best_product(products):
    return max(products, key=lambda name: (products[name], name))


def month_lines(month, products):
    yield "== {} ==".format(month)
    for name in sorted(products):
        yield "{:<20}{:>10.2f}".format(name, products[name])
    yield "{:<20}{:>10.2f}".format("total", sum(products.values()))
    yield "best: {}".format(best_product(products))


def report(text, title="Sales"):
    by_month = totals(read_sales(text))
    lines = ["{} ({} months)".format(title, len(by_month))]
    for month in sorted(by_month):
        lines.append("")
        lines.extend(month_lines(month, by_month[month]))
    return "\n".join(lines) + "\n"


def save(text, path, title="Sales"):
    content = report(text, title)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(content)
    return "{}: {} lines".format(path, content.count("\n"))

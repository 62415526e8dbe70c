"""Read a web server's access log and say which pages are slow."""

import re
from collections import defaultdict

LINE = re.compile(r'"(?P<method>[A-Z]+) (?P<path>\S+) [^"]*" (?P<status>\d{3}) (?P<ms>\d+)')


def parse_line(line):
    match = LINE.search(line)
    if match is None:
        return None
    return match["path"], int(match["status"]), int(match["ms"])


def times_by_path(lines):
    times = defaultdict(list)
    for line in lines:
        entry = parse_line(line)
        if entry is not None and entry[1] < 500:
            times[entry[0]].append(entry[2])
    return times


def slowest(times, count=5):
    means = {path: sum(values) / len(values) for path, values in times.items()}
    ordered = sorted(means, key=means.get, reverse=True)
    return [(path, means[path]) for path in ordered[:count]]


def report(lines, count=5):
    rows = slowest(times_by_path(lines), count)
    return "\n".join(f"{mean:8.1f} ms  {path}" for path, mean in rows)

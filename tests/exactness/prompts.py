"""Prompts of our own for the exactness tests: ten whose answers copy, ten whose answers do not."""

from __future__ import annotations

_FUNCTIONS = (
    '''\
def read_settings(path, defaults):
    """Read key = value lines from a file, over the defaults."""
    settings = dict(defaults)
    with open(path) as lines:
        for line in lines:
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key, _, value = line.partition("=")
            settings[key.strip()] = value.strip()
    return settings
''',
    """\
def moving_average(values, width):
    if width < 1:
        raise ValueError("width must be at least 1")
    averages = []
    total = 0.0
    for index, value in enumerate(values):
        total += value
        if index >= width:
            total -= values[index - width]
        averages.append(total / min(index + 1, width))
    return averages
""",
    """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise IndexError("the stack is empty")
        return self.items.pop()

    def peek(self):
        return self.items[-1] if self.items else None
""",
    """\
def parse_time(text):
    hours, minutes, seconds = 0, 0, 0
    parts = text.split(":")
    if len(parts) == 3:
        hours, minutes, seconds = map(int, parts)
    elif len(parts) == 2:
        minutes, seconds = map(int, parts)
    else:
        seconds = int(parts[0])
    return hours * 3600 + minutes * 60 + seconds
""",
    """\
def group_words(words):
    groups = {}
    for word in words:
        key = "".join(sorted(word.lower()))
        if key not in groups:
            groups[key] = []
        groups[key].append(word)
    result = []
    for key in sorted(groups):
        if len(groups[key]) > 1:
            result.append(groups[key])
    return result
""",
)

_ORDERS = (
    "Repeat this code exactly, in one code block:\n\n```python\n{code}```",
    "Here is a file:\n\n```python\n{code}```\n\nWrite the same file again without any change.",
)

COPYING = tuple(order.format(code=code) for order in _ORDERS for code in _FUNCTIONS)

FREE = (
    "Write a short story about a lighthouse keeper who is afraid of the dark.",
    "Explain to a child why the sky is blue.",
    "List ten uses for an old bicycle wheel.",
    "Describe how bread is made, step by step.",
    "Write a Python function that solves the towers of Hanoi, and explain it.",
    "What should one see in Lisbon in three days?",
    "Write a letter to a landlord about a broken heater.",
    "Compare cats and dogs as companions for an old sailor.",
    "Write a poem about rust.",
    "Explain what a hash table is and when it is slow.",
)

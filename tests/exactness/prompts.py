"""Prompts of our own for the exactness tests: ten plain texts that go on copying, ten questions that do not."""

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
class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("the amount must be positive")
        self.balance = self.balance + amount

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("the balance is too low")
        self.balance = self.balance - amount
""",
    """\
class Rectangle:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height

    def perimeter(self):
        return 2 * (self.width + self.height)

    def scaled(self, factor):
        return Rectangle(self.width * factor, self.height * factor)
""",
)

#: Even a tiny model goes on with what it has seen three times.
COPYING = tuple(
    separator.join((code, code, code, code.split("\n")[0]))
    for separator in ("\n\n", "\n# The same once more:\n\n")
    for code in _FUNCTIONS
)

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

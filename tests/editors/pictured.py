"""The code that pictures of editors show, and what a model makes of it."""

CART = '''\
from dataclasses import dataclass, field


@dataclass
class Cart:
    items: list = field(default_factory=list)

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def total(self):
        total = 0
        for _name, price, count in self.items:
            total += price * count
        return total

    def discounted(self, rate):
        """What the cart costs with a discount."""
        return self.total() * (1 - rate)
'''
CHANGES = {
    "items: list =": "items: list[tuple[str, float, int]] =",
    "add(self, name, price, count=1):": "add(self, name: str, price: float, count: int = 1) -> None:",
    "total(self):": "total(self) -> float:",
    "discounted(self, rate):": "discounted(self, rate: float) -> float:",
    "        return self.total() *": """\
        if not 0 <= rate <= 1:
            raise ValueError(f"{rate} is no discount")
        return self.total() *""",
}
LABEL = """\
def label(colour):
    if not colour:
        return None
    return f"the {colour.lower()} one"
"""


def changed(text: str) -> str:
    """The class after all changes."""
    for old, new in CHANGES.items():
        text = text.replace(old, new)
    return text

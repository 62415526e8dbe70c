"""What lies in the warehouse, and what has to be ordered."""

from dataclasses import dataclass


@dataclass
class Item:
    name: str
    qty: int
    reorder_at: int = 10
    price_cents: int = 0


class Inventory:
    def __init__(self):
        self.items = {}

    def receive(self, name, qty, price_cents=0):
        if name in self.items:
            self.items[name].qty += qty
        else:
            self.items[name] = Item(name, qty, price_cents=price_cents)

    def ship(self, name, qty):
        item = self.items[name]
        if qty > item.qty:
            raise ValueError(f"only {item.qty} of {name} left")
        item.qty -= qty

    def to_order(self):
        return sorted(item.name for item in self.items.values() if item.qty < item.reorder_at)

    def value_cents(self):
        return sum(item.qty * item.price_cents for item in self.items.values())

"""A small ledger: accounts, transfers between them, and a statement of each."""

from dataclasses import dataclass, field


@dataclass
class Account:
    owner: str
    balance: int = 0
    history: list = field(default_factory=list)

    def deposit(self, amt, note=""):
        if amt <= 0:
            raise ValueError(f"can't deposit {amt} cents")
        self.balance += amt
        self.history.append((amt, note))

    def withdraw(self, amt, note=""):
        if amt <= 0:
            raise ValueError(f"can't withdraw {amt} cents")
        if amt > self.balance:
            raise ValueError(f"{self.owner} has only {self.balance} cents")
        self.balance -= amt
        self.history.append((-amt, note))

    def statement(self):
        lines = [f"Statement for {self.owner}"]
        for amt, note in self.history:
            lines.append(f"{amt / 100:>10.2f}  {note}".rstrip())
        lines.append(f"{self.balance / 100:>10.2f}  balance")
        return "\n".join(lines)


def transfer(source, target, amt, note=""):
    """Move money from one account to another; if that fails, neither changes."""
    source.withdraw(amt, note or f"to {target.owner}")
    target.deposit(amt, note or f"from {source.owner}")

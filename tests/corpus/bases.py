"""Files as agents meet them, each with some changes: passages that stand once, and many that stand twice."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

PYTHON = '''"""Accounts and what moves between them."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass
class Account:
    name: str
    balance: int = 0

    def deposit(self, amount: int) -> None:
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.log("deposit", amount)

    def withdraw(self, amount: int) -> None:
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance -= amount
        self.log("withdraw", amount)

    def log(self, what: str, amount: int) -> None:
        print(json.dumps({"what": what, "amount": amount}))


class Bank:
    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}

    def open(self, name: str) -> Account:
        account = Account(name)
        self.accounts[name] = account
        return account

    def total(self) -> int:
        result = 0
        for account in self.accounts.values():
            result += account.balance
        return result


def main() -> None:
    bank = Bank()
    bank.open("a").deposit(5)
    bank.open("b").deposit(7)
    print(bank.total())


if __name__ == "__main__":
    main()
'''

SCRIPT = """import { read } from './read.js';

export function first(list) {
  if (!list.length) {
    return null;
  }
  return list[0];
}

export function last(list) {
  if (!list.length) {
    return null;
  }
  return list[list.length - 1];
}

export async function load(path) {
  const text = await read(path);
  const rows = text.split('\\n').map((row) => row.trim());
  return rows.filter((row) => row && row !== '<none>');
}

export default { first, last, load };
"""

TABBED = """package stack

import "fmt"

type Stack struct {
\titems []int
}

func (s *Stack) Push(item int) {
\ts.items = append(s.items, item)
}

func (s *Stack) Pop() (int, error) {
\tif len(s.items) == 0 {
\t\treturn 0, fmt.Errorf("empty")
\t}
\titem := s.items[len(s.items)-1]
\ts.items = s.items[:len(s.items)-1]
\treturn item, nil
}

func (s *Stack) Peek() (int, error) {
\tif len(s.items) == 0 {
\t\treturn 0, fmt.Errorf("empty")
\t}
\treturn s.items[len(s.items)-1], nil
}
"""

PROSE = """# The tool

Some words on it.

## Install

```sh
pip install tool
tool --version
```

## Use

- first, "open" it
- then use it
- then close it

```sh
tool run --all
```

The end — really.
"""

SETTINGS = """[server]
host = "localhost"
port = 8080
debug = false

[client]
host = "localhost"
port = 9090
debug = false

[log]
level = "info"
path = "/var/log/tool.log"
"""

UNENDED = "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\neta"


class Change(msgspec.Struct, frozen=True):
    """A file, and what it shall become."""

    name: str
    path: str
    before: str
    after: str


def _change(name: str, path: str, before: str, *pairs: tuple[str, str]) -> Change:
    after = before
    for old, new in pairs:
        assert after.count(old) == 1, (name, old)
        after = after.replace(old, new)
    return Change(name, path, before, after)


def changes() -> Iterator[Change]:
    py, js, go, md, ini = "src/bank.py", "web/list.js", "stack/stack.go", "README.md", "etc/tool.toml"
    yield _change("py-word", py, PYTHON, ('bank.open("a").deposit(5)', 'bank.open("a").deposit(50)'))
    yield _change("py-import", py, PYTHON, ("import json\n", "import json\nimport sys\n"))
    yield _change(
        "py-twin", py, PYTHON, ('self.balance -= amount\n        self.log("withdraw", amount)', "self.take(amount)")
    )
    yield _change(
        "py-loop",
        py,
        PYTHON,
        (
            """        result = 0
        for account in self.accounts.values():
            result += account.balance
        return result
""",
            "        return sum(account.balance for account in self.accounts.values())\n",
        ),
    )
    yield _change(
        "py-two-places", py, PYTHON, ("balance: int = 0", "balance: int = 1"), ("print(bank.total())", "print(bank)")
    )
    yield _change(
        "py-method",
        py,
        PYTHON,
        ("    def total(self)", "    def close(self) -> None:\n        self.accounts = {}\n\n    def total(self)"),
    )
    yield _change("py-last", py, PYTHON, ("    main()\n", "    raise SystemExit(main())\n"))
    yield _change("py-first", py, PYTHON, ("and what moves between them", "and their money"))
    yield _change("js-line", js, SCRIPT, ("return list[0];", "return list.at(0);"))
    yield _change("js-last", js, SCRIPT, ("return list[list.length - 1];", "return list.at(-1);"))
    yield _change("js-quotes", js, SCRIPT, ("'<none>'", "'<nil>'"))
    yield _change("js-remove", js, SCRIPT, ("\nexport default { first, last, load };\n", ""))
    yield _change("go-line", go, TABBED, ("item := s.items[len(s.items)-1]", "top := s.items[len(s.items)-1]"),
                  ("return item, nil", "return top, nil"))  # fmt: skip
    yield _change("go-field", go, TABBED, ("\titems []int\n", "\titems []int\n\tlimit int\n"))
    yield _change("go-far", go, TABBED, ("package stack", "package pile"), ("\treturn s.items[len(s.items)-1], nil",
                  "\treturn s.top(), nil"))  # fmt: skip
    yield _change("md-item", md, PROSE, ("- then use it", "- then use it well"))
    yield _change("md-code", md, PROSE, ("tool run --all", "tool run --some"))
    yield _change("md-section", md, PROSE, ("## Use\n", "## Upgrade\n\nAgain.\n\n## Use\n"))
    yield _change("ini-port", ini, SETTINGS, ("port = 9090", "port = 9091"))
    yield _change("ini-level", ini, SETTINGS, ('level = "info"', 'level = "debug"'))
    yield _change("unended-middle", "notes.txt", UNENDED, ("gamma", "GAMMA"))
    yield _change("unended-last", "notes.txt", UNENDED, ("\neta", "\nETA"))
    yield Change("unended-more", "notes.txt", UNENDED, UNENDED + "\ntheta\n")
    yield Change("ended-less", "notes.txt", UNENDED + "\n", UNENDED)

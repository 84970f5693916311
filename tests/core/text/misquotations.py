"""Passages quoted wrongly: what may be misquoted and lands, and what says another thing and must not land."""

from __future__ import annotations

import msgspec


def squeezed(text: str) -> str:
    return "".join(text.split())


class Misquoted(msgspec.Struct, frozen=True):
    """A file, and a search with its replacement. `after`: what the file holds then; None: it must be refused."""

    name: str
    text: str
    search: str
    replace: str
    after: str | None = None


def differs(name: str, text: str, search: str, replace: str) -> Misquoted:
    assert squeezed(search) not in squeezed(text), name
    return Misquoted(name, text, search, replace)


def applies(
    name: str, text: str, search: str, change: tuple[str, str], done: tuple[str, str] | None = None
) -> Misquoted:
    """`change`: what differs between search and replacement; `done`: what it does, if the file reads otherwise."""
    old, new = done or change
    assert search.count(change[0]) == 1 == text.count(old), name
    assert search not in text, name
    return Misquoted(name, text, search, search.replace(*change), text.replace(old, new))


CHECK = "    if not ready(x) and known(x):\n        return stop(x, 'late')\n    go(x)\n"
COMPARED = (
    "    while count_of_items < limit_of_items:\n        step(count_of_items, by=one)\n        rest()\n"
    "    return count_of_items\n"
)
GRANT = "GRANT SELECT ON accounts_eu TO reporting_user;\nCOMMIT;\n"
TIMEOUT = "[client]\nread_timeout = 'slow enough for all'\naddress = 'example.org'\nname = 'first'\n"

DOC = (
    'class Shop:\n    def order(self, item):\n        """Take an item from the shelf and put it into the basket.\n\n'
    "        The price is that of the day on which it was ordered, whatever happens later.\n"
    '        """\n        basket = self.basket.put(item)\n        return basket\n'
)
README = (
    "# Shop\n\nThe shop sells all of the items that are listed in its table.\n"
    "An order is taken only if there is an item of that name on the shelf.\n\nSee the manual.\n"
)
INSIDE = "if ready:\n    second_step(x)\nthird_step(x, all_of_them)\n"
TABLE = "query = '''\ndelete the old rows from the table of usera when they are done\n'''\nrun(query)\n"

NESTED = "class Shop:\n    def order(self):\n        if ready:\n            go(1)\n        return first(found)\n"
FLAT = "def order(self):\nif ready:\ngo(1)\nreturn first(found)\n"

OTHER_THINGS = (
    Misquoted("no indentation at all, a line added", NESTED, FLAT, FLAT.replace("go(1)\n", "go(1)\nstop()\n")),
    Misquoted("no indentation at all, a line in the place of two", NESTED, FLAT, FLAT.replace("go(1)\nreturn first", "give(")),
    differs("a paraphrased docstring", DOC, DOC.replace("put it into the basket", "place it into the basket"),
            DOC.replace("put it into the basket", "place it into the basket").replace("self.basket.put(item)", "self.put(item)")),
    differs("a paraphrased line of prose", README, README.replace("sells all of the items", "sells all items"),
            README.replace("sells all of the items", "sells all items").replace("See the manual.", "Read on.")),
    differs("a name in a string of several lines", TABLE, "delete the old rows from the table of userb when they are done\n",
            "delete all the rows from the table of userb when they are done\n"),
    differs("a contrary in a comment alone", "# it is legal to use this for all of the parts\nx = 1\n",
            "# it is illegal to use this for all of the parts\n", "# it is illegal to use this for some of the parts\n"),
    Misquoted("a line outside of the block that it is quoted in", INSIDE, "    second_step(x)\n    third_step(x, all_of_them)\n",
              "    second_step(x)\n    third_step(x, some_of_them)\n"),
    Misquoted("a block quoted without its step", "with lock:\n    count()\n    store(all_of_them)\nlog()\n",
              "    store(all_of_them)\n    log()\n", "    store(some_of_them)\n    log()\n"),
    differs("a case label", "switch (x) {\n  case KIND_A:\n    handle(x);\n    break;\n}\n",
            "  case KIND_B:\n    handle(x);\n    break;\n", "  case KIND_B:\n    handle(x, 1);\n    break;\n"),
    differs("a TOML key", TIMEOUT, "write_timeout = 'slow enough for all'\naddress = 'example.org'\n",
            "write_timeout = 'slow enough for all'\naddress = 'example.com'\n"),
    differs("a TOML key of one letter more", TIMEOUT, "read_timeouts = 'slow enough for all'\naddress = 'example.org'\n",
            "read_timeouts = 'slow enough for all'\naddress = 'example.com'\n"),
    differs("a host", "host-a.example.org allow all\nother line\n", "host-b.example.org allow all\n",
            "host-b.example.org deny all\n"),
    differs("a branch of a shell case", "case $1 in\n  start) run_it --now ;;\n  *) exit 1 ;;\nesac\n",
            "  restart) run_it --now ;;\n", "  restart) run_it --later ;;\n"),
    differs("a route's method", "app.get('/users', listUsers);\napp.post('/login', doLogin);\n",
            "app.put('/users', listUsers);\n", "app.put('/users', listUsers, auth);\n"),
    differs("a CSS class", ".col-a {\n  color: red;\n  margin: 0;\n}\n", ".col-b {\n  color: red;\n  margin: 0;\n}\n",
            ".col-b {\n  color: blue;\n  margin: 0;\n}\n"),
    differs("an attribute", "class B:\n    def f(self, v):\n        self.width = v\n        self.changed()\n",
            "        self.weight = v\n        self.changed()\n", "        self.weight = v\n        self.changed(1)\n"),
    differs("a CSV row", "name,city,state\nanne,berlin,active\nzoe,paris,active\n", "anna,berlin,active\n",
            "anna,berlin,deleted\n"),
    differs("a name in SQL", "INSERT INTO roles VALUES ('admin', 'bob');\nSELECT done;\n",
            "INSERT INTO roles VALUES ('admin', 'rob');\n", "INSERT INTO roles VALUES ('guest', 'rob');\n"),
    differs("a name in YAML", "users:\n  - name: bob\n    role: admin\nkeep: yes\n", "  - name: rob\n    role: admin\n",
            "  - name: rob\n    role: guest\n"),
    differs("a variable of a shell", "export DB_HOST=localhost\nexport DB_NAME=shop\n",
            "export DB_POST=localhost\nexport DB_NAME=shop\n", "export DB_POST=localhost\nexport DB_NAME=shoq\n"),
    differs("a negation left out", CHECK, CHECK.replace("not ", ""), CHECK.replace("not ", "").replace("late", "x")),
    differs("a negation added", CHECK.replace("not ", ""), CHECK, CHECK.replace("late", "x")),
    differs("and for or", CHECK, CHECK.replace(" and ", " or "), CHECK.replace(" and ", " or ").replace("late", "x")),
    differs("plus for minus", "def f(total, tax):\n    result = total - tax\n    return result\n",
            "    result = total + tax\n    return result\n", "    result = total + tax\n    return round(result)\n"),
    differs("equal for unequal", "def f():\n    if user.is_admin == True:\n        allow(user)\n    log(user)\n",
            "    if user.is_admin != True:\n        allow(user)\n    log(user)",
            "    if user.is_admin != True:\n        deny(user)\n    log(user)"),
    differs("a comparison", COMPARED, COMPARED.replace("<", ">="), COMPARED.replace("<", ">=").replace("rest", "stay")),
    differs("less for at most", COMPARED, COMPARED.replace("<", "<="),
            COMPARED.replace("<", "<=").replace("rest", "stay")),
    differs("true for false, in the context", "def f():\n    delete(path, dry_run=True, verbose=False)\n    log(path)\n",
            "    delete(path, dry_run=True, verbose=True)\n    log(path)\n",
            "    delete(path, dry_run=True, verbose=True)\n    log(path, 1)\n"),
    differs("true for false, in the line that is changed", "delete(path, dry_run=True, verbose=False)\n",
            "delete(path, dry_run=True, verbose=True)", "delete(path, dry_run=False, verbose=True)"),
    differs("a table in a grant", GRANT, GRANT.replace("_eu", "_us"), GRANT.replace("_eu", "_us") + "VACUUM;\n"),
    differs("a bucket", 'resource "bucket_staging" {\n  acl = "private"\n  versioning = true\n}\n',
            'resource "bucket_stating" {\n  acl = "private"\n  versioning = true\n}',
            'resource "bucket_stating" {\n  acl = "public"\n  versioning = true\n}'),
    differs("a JSON key", '{\n  "source_path": "/srv/data/input",\n  "mode": "fast"\n}\n',
            '  "source_paths": "/srv/data/input",\n  "mode": "fast"\n',
            '  "source_paths": "/srv/data/input",\n  "mode": "slow"\n'),
    differs("a string's content", "def f():\n    send(topic='orders.created', payload=p)\n    ack()\n",
            "    send(topic='orders.creates', payload=p)\n    ack()\n",
            "    send(topic='orders.creates', payload=p)\n    ack(1)\n"),
    differs("None for True", "def f():\n    configure(enabled=True, retries=r, timeout=t, name=n)\n    ack()\n",
            "    configure(enabled=None, retries=r, timeout=t, name=n)\n    ack()\n",
            "    configure(enabled=None, retries=r, timeout=t, name=n)\n    ack(1)\n"),
    differs("SQL that reads as a sentence", "select the_name from users where deleted is null\nand which is of the one\n",
            "select the_name from users where created is null\nand which is of the one\n",
            "select the_name from users where created is null\nand which is of the two\n"),
    differs("a make target", "test-unit:\n\tpytest tests/unit\n\techo done\n",
            "test-units:\n\tpytest tests/unit\n\techo done\n", "test-units:\n\tpytest tests/unit\n\techo ok\n"),
    differs("a heading", "## Installing on Linux and others\n\nRun the installer.\n",
            "## Installing on Linus and others\n\nRun the installer.\n",
            "## Installing on Linus and others\n\nRun it.\n"),
    differs("a heading of the first level", "# Linux\n\nRun the installer, and wait until it has ended itself.\n",
            "# Windows\n\nRun the installer, and wait until it has ended itself.\n",
            "# Windows\n\nRun the installer, and wait.\n"),
    differs("another comment over the same lines",
            "# production\nresource.acl = 'private'\nresource.versions = 'many of them are kept here'\n",
            "# staging\nresource.acl = 'private'\nresource.versions = 'many of them are kept here'\n",
            "# staging\nresource.acl = 'public'\nresource.versions = 'many of them are kept here'\n"),
    differs("a negation in a comment", "# the cache must not be emptied before the end of the run\nrun(cache)\n",
            "# the cache must be emptied before the end of the run\nrun(cache)\n",
            "# the cache must be emptied before the end of the run\nclear(cache)\n"),
    differs("a negation in prose", "The answer is always sent without the secret of the caller.\nThen it ends.\n",
            "The answer is always sent with the secret of the caller.\nThen it ends.\n",
            "The answer is always sent with the secret of the caller.\nThen it goes on.\n"),
    differs("a contrary in prose", "All of the files that are safe have been listed in the table below.\nThen it ends.\n",
            "All of the files that are unsafe have been listed in the table below.\nThen it ends.\n",
            "All of the files that are unsafe have been listed in the table below.\nThen it goes on.\n"),
    differs("a name in prose", "Bob is the one who has the keys of the house in his hands.\nThat is all.\n",
            "Rob is the one who has the keys of the house in his hands.\nThat is all.\n",
            "Rob is the one who has the keys of the house in his hands.\nThat is not all.\n"),
    differs("a number in a comment", "# the limit of the buffer is 4096 bytes\nlimit(buffer)\n",
            "# the limit of the buffer is 8192 bytes\nlimit(buffer)\n",
            "# the limit of the buffer is 8192 bytes\nlimit(buffer, x)\n"),
    differs("a macro", "#define LIMIT_OF_THE_BUFFER small\nint f(void);\n", "#define LIMIT_ON_THE_BUFFER small\nint f(void);\n",
            "#define LIMIT_ON_THE_BUFFER small\nint f(int);\n"),
    differs("a divisor", "total = (first_value + second_value) // count_a\nreturn total\n",
            "total = (first_value + second_value) // count_b\nreturn total\n",
            "total = (first_value + second_value) // count_b\nreturn 1\n"),
    differs("a line that names the place is dropped",
            "def save_all(items, target):\n    for item in items:\n        target.write(item)\n    target.flush()\n",
            "x()\ndef save_all(items, target):\n    for item in items:\n        target.write(item)\n    target.flush()\n",
            "x()\ndef save_all(items, target):\n    for item in items:\n        target.put(item)\n    target.flush()\n"),
    Misquoted("blanks in a string", "    parts = text.split(', ')\n    return parts\n",
              "    parts = text.split(',')\n    return parts\n", "    parts = text.split(',')\n    return 1\n"),
)  # fmt: skip

PRICE = (
    "def price(item, count):\n    # the price of one is looked up in the table of the shop\n"
    "    found = table.find(item)\n\n    if found is None:\n        raise KeyError('no such item', item)\n"
    "    return found.price * count\n"
)
GO = (
    "package shop\n\n// Price returns the price of one item, as the table of the shop has it.\n"
    "func Price(item string) (int, error) {\n\tfound, ok := table[item]\n\tif !ok {\n"
    '\t\treturn 0, errors.New("no such item")\n\t}\n\treturn found.price, nil\n}\n'
)
JS = (
    "/**\n * Put an item into the basket of the user who is logged in.\n */\n"
    "export function put(item, basket) {\n  if (basket.full()) {\n    throw new Error('the basket is full');\n  }\n"
    "  return basket.put(item, { once: true });\n}\n"
)
SQL = "-- the users of the shop, with all that they have ordered so far\nSELECT name, total\nFROM users\nWHERE total > 0;\n"
CSS = ".card {\n  color: red;\n  margin: 0 auto;\n  font-family: 'Some Font', serif;\n}\n"
RUST = (
    "/// The price of one item, as it is written in the table of the shop.\n"
    "pub fn price(&self, item: &str) -> Option<u32> {\n    let found = self.table.get(item)?;\n    Some(found.price)\n}\n"
)
HTML = '<!-- the list of all the items that are on the shelf -->\n<ul class="items">\n  <li>{{ item }}</li>\n</ul>\n'
YAML = "# what is built when somebody pushes to the branch\nbuild:\n  image: 'python'\n  steps:\n    - run: make\n"
SHELL = '# take the newest of the archives that lie in here\nlast=$(ls -t *.gz | head -n 1)\ntar -xzf "$last"\n'


def without(text: str, start: str, stop: str | None = None) -> str:
    """From one piece of the text to another, or the end."""
    at = text.index(start)
    return text[at : text.index(stop, at) if stop else None]


SHORT = PRICE.replace("the price of one is looked up in the table of the shop", "look")
BODY = without(PRICE, "    found =")

LANDS = (
    applies("no indentation", PRICE, "found = table.find(item)\n\nif found is None:\n", ("None", "Nothing")),
    applies("two blanks for four", PRICE, BODY.replace("    ", "  "), ("found.price * count", "0")),
    applies("blanks for tabs", GO, without(GO, "\tfound", "\treturn found").replace("\t", "    "), ("!ok", "!good")),
    applies("tabs for blanks", JS, without(JS, "  if", "  return").replace("  ", "\t"), ("full()", "full(1)")),
    applies("blanks at the ends", PRICE, BODY.replace("\n", "  \n"), ("found.price * count", "0")),
    applies("curled quotes", PRICE, BODY.replace("'no such item'", "\u2018no such item\u2019"), ("price * count", "0")),
    applies("curled for straight double quotes", GO, without(GO, "\tif", "}\n").replace('"no such item"', "\u201cno such item\u201d"),
          ("!ok", "!good")),
    applies("double quotes for single", PRICE, BODY.replace("'", '"'), ("found.price * count", "0")),
    applies("single quotes for double", GO, without(GO, "\tfound").replace('"', "'"), ("!ok", "!good")),
    applies("other quotes in CSS", CSS, CSS.replace("'", '"'), ("0 auto", "1em")),
    applies("a comment left out, in front", YAML + YAML.replace("build", "test").replace("# what", "# all that"),
          "test:\n  image: 'python'\n  steps:\n      - run: make\n", ("image: 'python'", "image: 'rust'"),
          ("test:\n  image: 'python'", "test:\n  image: 'rust'")),
    applies("a comma left out at the end", '{\n  "name": "shop",\n  "mode": "fast"\n}\n', '  "name": "shop"\n  "mode": "fast"\n',
          ("fast", "slow")),
    applies("a semicolon left out at the end", JS, without(JS, "  if").replace(";", ""), ("once: true", "once: false")),
    applies("no indentation at all, a line changed", NESTED, FLAT, ("go(1)", "go(2)")),
)  # fmt: skip

ONLY_ALIKE = tuple(
    msgspec.structs.replace(case, after=None)
    for case in (
        applies("blanks around brackets", PRICE, "    found = table.find( item )\n", ("found = table", "found = shelf")),
        applies("blanks left out", CSS, ".card{\n  color:red;\n  margin: 0 auto;\n", ("0 auto", "1em")),
        applies("a full stop left out, in Go", GO, without(GO, "// Price", "\tfound").replace("has it.", "has it"),
              ("item string", "item Item")),
        applies("a full stop left out, in a docstring", DOC, without(DOC, "        The price", "        return").replace("later.", "later"),
              ("self.basket.put(item)", "self.put(item)")),
        applies("a word of a comment, in Python", PRICE, PRICE.replace("looked up in", "looked it up in"), ("found.price * count", "0")),
        applies("a word of a comment, in Rust", RUST, RUST.replace("written in", "noted in"), ("found.price", "found.cost")),
        applies("a word of a comment, in SQL", SQL, SQL.replace("that they have", "they have"), ("> 0", "> 5")),
        applies("a word of a comment, in a shell", SHELL, SHELL.replace("lie in here", "lay in here"), ("-xzf", "-xf")),
        applies("a word of a comment, in HTML", HTML, HTML.replace("that are on the", "on the"), ("items\">", "all\">")),
        applies("a word of a comment, in YAML", YAML, YAML.replace("somebody", "anyone"), ("run: make", "run: ninja")),
        applies("a word of a block comment", JS, JS.replace("is logged in", "has logged in"), ("once: true", "once: false")),
        applies("a comment left out, in Python", SHORT, SHORT.replace("    # look\n", ""),
              ("found.price * count", "0")),
        applies("a comment that is not there",
              PRICE, PRICE.replace("    if found", "    # unknown\n    if found"), ("found.price * count", "0")),
        applies("dots for context", SHORT, SHORT.replace("    # look\n", "    ...\n"),
              ("found.price * count", "0")),
        applies("a comment with dots for context", SHORT,
              SHORT.replace("    # look\n", "    # ...\n"), ("found.price * count", "0")),
        applies("a blank line too many", PRICE, BODY.replace("    if", "\n    if"), ("found.price * count", "0")),
        applies("a blank line left out", PRICE, BODY.replace("\n\n", "\n"), ("found.price * count", "0")),
        applies("a comment at the end of a line", "int f(int a) {\n  int b = a * 2; // twice as many as there are\n  return b;\n}\n",
              "  int b = a * 2; // twice as many as there were\n  return b;\n", ("return b", "return b + 1")),
        applies("a comment at the end of a line left out", "def f(a):\n    b = a * 2  # twice\n    return b + limit_of_all_items\n",
              "    b = a * 2\n    return b + limit_of_all_items\n", ("return b", "return b + 1")),
    )
)  # fmt: skip
"""Quoted in other words or with other lines: only alike, and so refused, whatever else says which place is meant."""

"""Secrets in the forms that issuers give them."""

from __future__ import annotations

import string

LONG = "".join(map("".join, zip(string.ascii_letters, "4907135682" * 6, strict=False))) * 2


SHAPES = {
    "a list": "- {}",
    "a quotation": "> {}",
    "line numbers": "12: {}",
    "added to a string": 'key += "{}\\n"',
    "a call": 'pem.append(b"{}")',
    "a shell": 'echo "{}" >> key.pem',
    "XML": "<l>{}</l>",
    "a table row": "| {} |",
    "fields": "{};;",
    "a constant": '    public const L = "{}";',
    "a list in JavaScript": "  '{}\\n' +",
    "YAML": "    {}",
}

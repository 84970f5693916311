"""`make docs`: the generated parts of the documents, and the stdio transport's constant answers."""

from __future__ import annotations

from tests.docs import answers
from tests.docs.documents import HOLDERS, generated, with_part

if __name__ == "__main__":
    for name, content in generated().items():
        document = HOLDERS[name].read_text(encoding="utf-8")
        HOLDERS[name].write_text(with_part(document, name, content), encoding="utf-8")
    answers.write()

"""`make docs`: the generated tables of LLM_FILE_ACCESS.md, and the stdio transport's constant answers."""

from __future__ import annotations

from tests.docs import answers
from tests.docs.documents import REFERENCE, generated, with_part

if __name__ == "__main__":
    document = REFERENCE.read_text(encoding="utf-8")
    for name, content in generated().items():
        document = with_part(document, name, content)
    REFERENCE.write_text(document, encoding="utf-8")
    answers.write()

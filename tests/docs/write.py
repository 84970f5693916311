"""`make docs`: put the generated tables into LLM_FILE_ACCESS.md."""

from __future__ import annotations

from tests.docs.documents import REFERENCE, generated, with_part

if __name__ == "__main__":
    document = REFERENCE.read_text(encoding="utf-8")
    for name, content in generated().items():
        document = with_part(document, name, content)
    REFERENCE.write_text(document, encoding="utf-8")

"""`make docs`: generated parts of the documents, the Python client's stub, the constant answers of stdio."""

from __future__ import annotations

from tests.docs import answers
from tests.docs.client_stub import STUB, stub
from tests.docs.documents import HOLDERS, generated, with_part

if __name__ == "__main__":
    for name, content in generated().items():
        document = HOLDERS[name].read_text(encoding="utf-8")
        HOLDERS[name].write_text(with_part(document, name, content), encoding="utf-8")
    STUB.write_text(stub(), encoding="utf-8")
    answers.write()

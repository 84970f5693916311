"""The vectors of a workspace's texts, and which are near a question; the orchestrator starts it as a program.

`__main__.py` reads requests, one JSON object a line, and prints the answers: begin there. `store.py` keeps the vectors,
never the texts. `embedders.py` makes them: by a model2vec folder, or by an OpenAI-compatible service.
"""

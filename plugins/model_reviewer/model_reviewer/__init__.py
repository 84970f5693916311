"""A reviewer that asks a language model about a conflict; the orchestrator starts it as a program.

`__main__.py` reads the arguments and the request, and prints the answer: begin there. `prompt.py` writes the
question. `services.py` asks Anthropic's Messages or an OpenAI-compatible service, by the vendor's SDK.
`api_key.py` finds the key, and masks it wherever the service says it again.
"""

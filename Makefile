# Everything that a person or CI does with this project. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKSPACE ?= $(CURDIR)
REPO ?= $(CURDIR)

.PHONY: help up stop test check demo bench soak load fuzz e2e conformance docs lock format clean

help: ## what there is
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %s (set PYTHON=…)" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

up: $(STAMP) ## start the daemon on WORKSPACE (default: this folder) and say how to connect
	@$(BIN)/orchestrator --workspace "$(WORKSPACE)" up

stop: $(STAMP) ## end the daemon of WORKSPACE
	@$(BIN)/orchestrator --workspace "$(WORKSPACE)" stop

test: $(STAMP) ## run everything that needs no opt-in
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(STAMP) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: $(STAMP) ## choose the newest versions that pyproject.toml allows, and note them with their hashes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--group dev --extra reviewers --extra languages-all --extra semantic --extra tokens --output-file requirements.lock pyproject.toml

format: $(STAMP) ## put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(STAMP) ## two agents share a copy of REPO (default: this project), told as a story
	$(BIN)/python -m demo "$(REPO)"

bench: $(STAMP) ## ratios beside the peers, in one run
	$(BIN)/python -m tests.benchmarks

soak: $(STAMP) ## the long series: kills at random moments, every fault and operation, thousands of merges
	$(BIN)/python -m pytest -n auto --dist worksteal -m soak

load: $(STAMP) ## heavy loads beside a second client, and 200,000 calls; needs the machine for itself
	$(BIN)/python -m pytest -m load tests/daemon

fuzz: $(STAMP) ## new examples for the property tests; atheris on what reads bytes first, FUZZ_S seconds for each target (60)
	EXAMPLES=new $(BIN)/python -m pytest -n auto --dist worksteal tests/core tests/journal
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3'
	$(BIN)/python -m tests.fuzz

e2e: $(STAMP) ## real agents against a scripted model; needs npm
	$(BIN)/python -m tests.end_to_end.agents

conformance: $(STAMP) ## the official scenarios of MCP, over HTTP and stdio; needs npm
	$(BIN)/python -m tests.end_to_end.conformance

docs: $(STAMP) ## write what is generated: tables of the documents, the Python client's stub, constant answers
	$(BIN)/python -m tests.docs.write

clean: ## take the environment and the caches away
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .bench *.egg-info

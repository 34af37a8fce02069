# Two commands do everything: `make prove` (the main job) and `make test` (every check).
# `make prove` needs Python 3.11+, Java 17+, git and make; docs/guides/prove.md lists what takes part
# where it is found (Maven, Go, Node.js, Rust, a C compiler, Debian's packages).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: prove test check lint types layers unit impostors fuzz bench lab soak dist site clean setup

PROOF := build/proof

prove: setup
	@$(BIN)/tally prove --out $(PROOF)

# The unit tests mostly wait, so the checks run beside them.
test: setup
	+@$(MAKE) --no-print-directory -j 2 unit lint types layers impostors fuzz

setup: $(VENV)/.synced

$(VENV)/.synced: pyproject.toml uv.lock Makefile tools/sync
	@tools/sync $(PYTHON) $(VENV)
	@touch $@

check: lint types layers

lint: setup
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports --no-cache

# Two cores are busy with three workers; more only wait longer.
WORKERS ?= 3

unit: setup
	tools/programs
	$(BIN)/pytest -q -n $(WORKERS)

impostors: setup
	$(BIN)/python tests/impostors/run.py

fuzz: setup
	$(BIN)/python -m tests.core.fuzz --count 200000

bench: setup
	$(BIN)/python bench/envelope.py

LAB := build/lab

lab: setup
	mkdir -p $(LAB)
	$(BIN)/python tools/iop_coverage.py --json >$(LAB)/coverage.json
	$(BIN)/tally lab all --out $(LAB) --coverage $(LAB)/coverage.json

soak: setup
	mkdir -p build
	$(BIN)/tally faults run all --messages 20000 --kill-broker 3 --kill-worker 3 --journal build/soak.jsonl

dist: setup
	tools/dist

site: setup
	$(BIN)/mkdocs build --strict --quiet
	@echo 'the documentation: build/site/index.html'

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

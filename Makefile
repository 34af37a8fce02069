# Two commands do everything: `make prove` (the main job) and `make test` (every check).
# A fresh machine needs Python 3.11+, Java 17+, git and make; the rest is fetched and pinned here.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
RETRY  := tools/retry
EXTRAS := --extra schemas --extra server --extra events --extra redis --extra rabbitmq --extra sqs \
          --extra kafka --extra pulsar --extra artemis --extra servicebus --extra postgresql \
          --extra telemetry --extra capture --extra lab --extra pipeline

.PHONY: prove test check lint types layers unit impostors fuzz bench lab soak clean setup

REGISTRY := examples/registry
PROOF    := build/proof

prove: setup
	$(BIN)/tally prove
	$(BIN)/tally schema check --registry $(REGISTRY)/registry.json
	$(BIN)/tally schema gdpr --require --registry $(REGISTRY)/registry.json
	@echo 'the gate must find this change breaking, with a witness:'
	$(BIN)/tally schema compat $(REGISTRY)/schemas/orders-created.json \
	  $(REGISTRY)/schemas/orders-created.v2-breaking.json; test $$? -eq 1
	mkdir -p $(PROOF)
	$(BIN)/tally lab run --broker vm --clients python --journal $(PROOF)/lab-vm.jsonl \
	  --capture $(PROOF)/captured-vm.jsonl
	$(BIN)/tally lab run --broker qpid --cases 'TC[123]*' --cases Envelope \
	  --journal $(PROOF)/lab-qpid.jsonl --capture $(PROOF)/captured-qpid.jsonl
	$(BIN)/tally report build $(PROOF)/lab-*.jsonl -o $(PROOF)/lab.html
	$(BIN)/tally pipeline run --input '$(PROOF)/lab-*.jsonl' --input '$(PROOF)/captured-*.jsonl' \
	  --registry $(REGISTRY)/registry.json --out $(PROOF)/lake --page $(PROOF)/traffic.html \
	  --fail-if 'bad>0' --fail-if 'lost>0'
	$(BIN)/tally pipeline tables --lake $(PROOF)/lake

test: setup check unit impostors fuzz

setup: $(VENV)/.synced

$(VENV)/.synced: pyproject.toml uv.lock Makefile
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tallystick needs Python 3.11 or newer")'
	test -x $(UV) || { $(PYTHON) -m venv $(VENV) && $(RETRY) $(BIN)/python -m pip install --quiet 'uv==0.13.7'; }
	$(RETRY) env -u VIRTUAL_ENV $(UV) sync --quiet --locked --python $(BIN)/python --inexact $(EXTRAS)
	@touch $@

check: lint types layers

lint: setup
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports --no-cache

unit: setup
	tools/browser
	$(BIN)/pytest -q -n 2 --dist loadscope

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

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

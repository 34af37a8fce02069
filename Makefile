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
	for broker in rabbitmq qpid; do for tier in full 4way local crash restart; do \
	  $(BIN)/tally lab run-tier $$tier --broker $$broker --journal $(LAB)/$$broker-$$tier.jsonl \
	    --junit $(LAB)/$$broker-$$tier.xml || exit 1; done; \
	  $(BIN)/tally lab fields 0-9-1 --broker $$broker --journal $(LAB)/$$broker-fields.jsonl || exit 1; done
	for broker in artemis qpid; do \
	  $(BIN)/tally lab fields 1.0 --broker $$broker --journal $(LAB)/$$broker-types.jsonl || exit 1; done
	$(BIN)/tally lab clock udp
	$(BIN)/tally lab clock broker --broker rabbitmq
	$(BIN)/tally lab clock broker --broker qpid
	$(BIN)/tally lab run --broker rabbitmq,qpid --journal $(LAB)/clients.jsonl
	$(BIN)/tally lab run --tier pairwise --broker rabbitmq,qpid --journal $(LAB)/clients-pairwise.jsonl
	$(BIN)/tally lab perf --broker rabbitmq,qpid --journal $(LAB)/perf.jsonl
	$(BIN)/python tools/iop_coverage.py --json >$(LAB)/coverage.json
	$(BIN)/tally report build $(LAB)/*.jsonl -o $(LAB)/report.html --coverage $(LAB)/coverage.json

soak: setup
	mkdir -p build
	$(BIN)/tally faults run all --messages 20000 --kill-broker 3 --kill-worker 3 --journal build/soak.jsonl

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Two commands set up everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WORKERS ?= 2

.PHONY: demo test test-full lint bench assurance docs clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test,docs]"
	touch $@

demo: $(STAMP)          ## the main job, end to end, on bundled data
	$(BIN)/dpgram demo --output demo-output

test: $(STAMP)          ## the default test run (under 15 minutes on 2 cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-full: $(STAMP)     ## with the long statistical and stress tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "full or not full"

lint: $(STAMP)          ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)         ## measured side by side; Markdown under benchmarks/results/
	$(BIN)/python benchmarks/speed.py

assurance: $(VENV)/.assurance   ## audits, fuzzing, faults, proofs; writes docs/assurance.md (under 30 minutes)
	$(BIN)/python -m assurance

$(VENV)/.assurance: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[assurance]"
	touch $@

docs: $(STAMP)          ## the documentation site, warnings as errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build build dist demo-output

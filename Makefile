# Two commands set up everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WORKERS ?= 2

.PHONY: demo test test-shuffled test-luck test-full test-oldest test-newest lint bench assurance fuzz neighbours docs lock locked build r js clean

$(STAMP): pyproject.toml papers/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test,docs]" --editable ./papers
	touch $@

demo: $(STAMP)          ## the main job, end to end, on bundled data
	$(BIN)/dpgram demo --output demo-output

test: $(STAMP)          ## the default test run (under 15 minutes on 2 cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

SEED   ?= 1
TIMES  ?= 50
WHO    ?= all

test-shuffled: $(STAMP) ## the same in another order: make test-shuffled SEED=2
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --shuffle $(SEED)

test-luck: $(STAMP)     ## TIMES over, what asks the system for random bits (make test finds out), with them; WHO=own or started: a part
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --luck=$(WHO) --shuffle $(SEED) --rounds $(TIMES)

test-full: $(STAMP)     ## with the long statistical and stress tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "full or not full"

# What must hold with any allowed dependency: files still load, sums are exact, mechanisms and fits are right.
ENDS   := tests/golden tests/unit tests/contracts

test-oldest:            ## the oldest dependencies that pyproject.toml allows, in an environment of its own
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --editable ".[test]" --editable ./papers --constraint constraints-oldest.txt
	.venv-oldest/bin/python -m pytest -n $(WORKERS) --dist worksteal $(ENDS)

test-newest:            ## the newest dependencies there are, in an environment of its own
	test -x .venv-newest/bin/python || $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable ".[test]" \
	    --editable ./papers
	.venv-newest/bin/python -m pytest -n $(WORKERS) --dist worksteal $(ENDS)

lint: $(STAMP)          ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)         ## measured side by side; Markdown under benchmarks/results/
	$(BIN)/python benchmarks/speed.py

assurance: $(VENV)/.assurance   ## audits, fuzzing, faults, proofs; writes docs/assurance.md (under an hour on 2 cores)
	$(BIN)/python -m assurance

fuzz: $(VENV)/.assurance        ## a million inputs over all fuzz targets (about half an hour of one core)
	$(BIN)/python -m assurance.fuzzing --inputs 1000000

neighbours: $(VENV)/.assurance  ## a million pairs of neighbours, exact differences against the bounds (long)
	$(BIN)/python -m assurance.kinds --pairs 1000000

$(VENV)/.assurance: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[assurance]"
	touch $@

docs: $(STAMP)          ## the documentation site, warnings as errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

lock:                   ## pin everything development uses, with hashes
	test -x .venv-lock/bin/python || $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --upgrade uv
	.venv-lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	    --upgrade --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --quiet --output-file requirements-dev.lock

locked:                 ## an environment with exactly the versions and files of the lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable ./papers
	touch $(STAMP)

build: $(STAMP)         ## sdists and wheels, built twice to the same bytes; dpgram's tried in empty environments
	rm -rf dist
	$(BIN)/python -m distribution.build --output dist --twice
	$(BIN)/python -m distribution.clean_install dist/dpgram-[0-9]*

r: $(STAMP)             ## the R package, with its example and its test vectors, in dist/
	$(BIN)/python -m distribution.r_package --output dist

js: $(STAMP)            ## the JavaScript module with the explorer's arithmetic, in dist/
	$(BIN)/python -m distribution.js_package --output dist

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-lock docs/_build build dist demo-output

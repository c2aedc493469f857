# `make` alone prints what there is. Everything runs from .venv, which `make setup` fills with exactly what the lock
# files name, checked by hash.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq install --require-hashes
# uv, itself as the lock file names it, takes a quarter of pip's time; where there is no uv, or no way to its index, pip
# does the same.
UV := awk '/^uv==/, !/\\$$/' requirements-dev.lock | $(PIP) -r /dev/stdin && \
  $(BIN)/uv pip install --python $(BIN)/python --quiet --compile-bytecode --require-hashes
INSTALL = { $(UV) -r $< || $(PIP) -r $<; }
DJADE := $(BIN)/djade --target-version 5.2
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --no-emit-index-url \
  --python-version 3.11 $(if $(UPGRADE),--upgrade) pyproject.toml
# Every line would carry the one marker of [tool.uv] environments.
BARE := sed -i.orig -E "s/( ;| and) platform_python_implementation == 'CPython' and sys_platform != 'emscripten' and sys_platform != 'win32'//"

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

.PHONY: help setup setup-dev chromium npm-servers run test test-slow check shape format messages texts reference bench load chaos cards lock sbom clean

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: .venv/runtime  ## the environment in .venv, with what the program needs

setup-dev: .venv/dev  ## the same, with what tests and checks need

run: setup  ## set up, migrate and start on 127.0.0.1:8000 (PORT=8000)
	@echo "Preparing the database and its tools (the first time about half a minute)"
	@$(BIN)/python manage.py migrate --no-input --verbosity 0
	@exec $(BIN)/python manage.py serve

test: setup-dev  ## the tests, also in Chromium and on PostgreSQL and Redis where they are found (ARGS="-k name")
	@$(BIN)/python -m tests.run $(ARGS)

test-slow: setup-dev chromium npm-servers  ## the others: kills, floods, upgrades, other people's servers and clients
	@$(BIN)/python -m tests.run --slow $(ARGS)

check: setup-dev  ## format, lint, types, import contracts, templates, scripts, bets on time in tests
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	find templates -name '*.html' -exec $(DJADE) --check {} +
	@$(BIN)/python tools/check_scripts.py
	@$(BIN)/python tools/check_tests.py

shape: setup-dev  ## print how many files and lines there are, and how deep imports go
	@$(BIN)/python -m pytest -q -s tests/architecture/test_shape.py tests/chat/test_way_of_a_call.py

format: setup-dev  ## fix what `make check` says about format and lint, where a tool can
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	find templates -name '*.html' -exec $(DJADE) {} +

texts: setup-dev  ## print every text that a person can read, by page (ARGS=approvals for a part)
	@$(BIN)/python tools/messages.py --list $(ARGS)

messages: setup-dev  ## collect the texts of pages into locale/ and compile their translations
	@$(BIN)/python tools/messages.py

reference: setup-dev  ## write docs/reference.md from the code
	@$(BIN)/python tools/reference.py

bench: setup-dev  ## measure (ARGS for what)
	@$(BIN)/python -m bench $(ARGS)

load: setup-dev  ## measure a full house: 2,000 pages, 100,000 calls that wait, 200 people at once
	@$(BIN)/python -m bench load full processes

chaos: setup-dev  ## kill servers in the middle of calls, and compare with a counter outside (ARGS="--kills 1000")
	@$(BIN)/python -m chaos $(ARGS)

cards: setup-dev chromium  ## draw calls that deceive and calls that do not, to see who is deceived (TO=var/cards)
	@CARDS=$(abspath $(or $(TO),var/cards)) $(BIN)/python -m pytest -q -n0 -s tests/gate/test_deceptions.py

chromium: setup-dev  ## a browser for the browser tests, if there is none
	@tools/chromium

npm-servers: setup-dev  ## MCP servers of other people's from npm, for the tests that connect to them
	@tools/npm_servers

lock: setup-dev  ## write the lock files from pyproject.toml (UPGRADE=1 for the newest versions)
	$(LOCK) --group dev --output-file requirements-dev.lock
	$(LOCK) --constraint requirements-dev.lock --output-file requirements.lock
	@$(BARE) requirements.lock requirements-dev.lock && rm -f requirements.lock.orig requirements-dev.lock.orig

sbom: setup  ## print a software bill of materials (CycloneDX) of requirements.lock
	@$(BIN)/python tools/sbom.py

clean:  ## remove the environment and what tools left behind (./var stays)
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hitlchat needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/runtime: requirements.lock | .venv/bin/python
	@echo "Installing the packages of $< into .venv (half a minute, once)"
	@$(INSTALL)
	@touch $@

.venv/dev: requirements-dev.lock | .venv/bin/python
	@echo "Installing the packages of $< into .venv (half a minute, once)"
	@$(INSTALL)
	@touch .venv/runtime $@

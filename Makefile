# Every target sets up what it needs: `.venv`, then the package and its tools, again only when pyproject.toml changes.
#
#   make demo       a mechanism from its model file to its animation
#   make test       lint, types, and every test that is not marked slow
#   make test-slow  the tests that are marked slow
#   make test-mechanisms  Newton and Euler on every body of 1,000 random coupled mechanisms, a part of make test-slow
#   make test-full  all tests with code compiled as users get it, and the grid of robots
#   make fuzz       odd inputs for everything that reads: SECONDS=60 SEED=1, or a new seed, which is printed
#   make test-lowest  the same tests with the lowest versions that pyproject.toml declares, in an environment of their own
#   make lint       lint and types alone
#   make docs       the documentation as a static site in site/, with every example and notebook run
#   make bench      the benchmarks, beside their peers
#   make viewer     the page of the animation anew from its sources: needs node and npm
#   make clean      remove what these targets made
#
# PYTHON=... chooses the interpreter; else it is the first of NAMES that is new enough.

SHELL := /bin/sh
NAMES := python3 python3.14 python3.13 python3.12 python3.11
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --quiet --no-compile
PYTEST := $(PY) -m pytest --numprocesses 2 --dist worksteal
# The stamps carry the checkout's place: an environment that was moved or copied with it is made anew.
PLACE := $(shell pwd | cksum | cut -d' ' -f1)
MADE := $(VENV)/made-$(PLACE)
READY := $(VENV)/ready-$(PLACE)
WEB := src/linkwright/viewer/web
READY_BENCH := $(VENV)/ready-bench-$(PLACE)
READY_DOCS := $(VENV)/ready-docs-$(PLACE)
# The lowest versions have wheels for these.
LOWEST := .venv-lowest
NAMES_LOWEST := python3.11 python3.12 python3
READY_LOWEST := $(LOWEST)/ready-$(PLACE)

.DEFAULT_GOAL := demo
.PHONY: demo test test-lowest test-slow test-mechanisms test-full fuzz lint docs bench viewer clean setup setup-full

demo: $(READY)
	@$(PY) -m linkwright demo

test: lint
	@$(PYTEST) -m "not slow" --quick-code

test-slow: setup-full
	@$(PYTEST) -m slow

test-mechanisms: $(READY)
	@$(PYTEST) -m slow tests/analysis/test_joint_and_gear_forces.py

test-full: setup-full lint
	@$(PYTEST)
	@$(PY) tests/grid.py --write

# The benchmarks' peers are test oracles too: JAX is one.
setup-full: $(READY_BENCH) $(READY_DOCS)
	@sh tests/symbolic/get_latex.sh

SECONDS := 60
fuzz: $(READY)
	@PYTHONPATH=tests $(PY) -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

test-lowest: $(READY_LOWEST)
	@$(LOWEST)/bin/python -m pytest --numprocesses 2 --dist worksteal -m "not slow" --quick-code

lint: $(READY)
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check --quiet
	@$(PY) -m mypy
	@$(PY) -m vulture

# What was run before and has not changed is not run again: see .site-cache.
docs: $(READY_DOCS)
	@PYTHONPATH=docs $(PY) -m sitebuilder

bench: $(READY_BENCH)
	@$(PY) -m linkwright bench

viewer:
	@cd $(WEB) && npm ci --ignore-scripts --silent && node build.mjs
	@ls -l $(WEB)/../bundle.js

setup: $(READY)

clean:
	rm -rf $(VENV) $(LOWEST) $(WEB)/node_modules out dist site .site-cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@python="$(PYTHON)"; \
	for name in $(NAMES); do \
	  if [ -z "$$python" ] && $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    python=$$name; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: Linkwright needs Python 3.11 or newer, and none was found as $(NAMES)." >&2; \
	  echo "       Install one, or name it: make demo PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$python" --version)"; \
	if ! "$$python" -m venv --clear $(VENV); then \
	  echo "error: $$python cannot make a virtual environment; Debian and Ubuntu have it in the package python3-venv" >&2; \
	  exit 1; \
	fi
	@touch $@

$(READY): pyproject.toml | $(MADE)
	@echo "installing linkwright and its tools into $(VENV); the first time takes a minute or two"
	@$(PIP) --editable ".[test]"
	@sh tests/viewer/get_browser.sh
	@touch $@

$(READY_BENCH): $(READY)
	@echo "installing the benchmarks' peers into $(VENV)"
	@$(PIP) --editable ".[bench]"
	@touch $@

$(READY_DOCS): $(READY)
	@echo "installing what the documentation needs into $(VENV)"
	@$(PIP) --editable ".[docs]"
	@touch $@

$(READY_LOWEST): pyproject.toml tests/lowest.py
	@python="$(PYTHON)"; \
	for name in $(NAMES_LOWEST); do \
	  if [ -z "$$python" ] && $$name -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' >/dev/null 2>&1; then \
	    python=$$name; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: the lowest versions need Python 3.11 or 3.12, and none was found as $(NAMES_LOWEST)" >&2; \
	  exit 1; \
	fi; \
	echo "making $(LOWEST) with $$("$$python" --version) and the lowest versions that pyproject.toml declares"; \
	"$$python" -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python tests/lowest.py > $(LOWEST)/requirements.txt
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet --quiet --no-compile \
	  --requirement $(LOWEST)/requirements.txt --editable .
	@touch $@

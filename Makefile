# Every target installs what it needs first. `make` alone lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help

.PHONY: help
help: ## list what make can do
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup $(VENV)
	@touch $(READY)

.PHONY: setup
setup: $(READY) ## virtual environment, pinned dependencies, Java check (every target does this first)
	@scripts/java-check

.PHONY: demo
demo: setup ## a skewed job on a local Spark: hash, round robin, PKG and unskew, with measured times (under 90 s)
	@$(BIN)/unskew demo

.PHONY: test
test: setup ## style, types and all tests
	@$(MAKE) --no-print-directory --jobs 2 check fast
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m "spark and not slow"

.PHONY: fast
fast: setup ## the tests that need no Spark
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -n auto -m "not spark and not slow"

.PHONY: soak
soak: setup ## streams whose drivers and executors are killed, long cases, and twenty minutes of small batches (about an hour)
	$(BIN)/python -m pytest -m slow

.PHONY: check
check: $(READY) ## ruff, mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

.PHONY: format
format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench
bench: setup ## speed, as ratios in one run
	$(BIN)/python benchmarks/run.py

.PHONY: reproduce
reproduce: setup ## the papers' evaluations, published beside measured
	$(BIN)/unskew reproduce pkg --out out/reproduce-pkg
	$(BIN)/unskew reproduce fish --out out/reproduce-fish
	$(BIN)/unskew reproduce cg --out out/reproduce-cg
	$(BIN)/unskew reproduce posg --out out/reproduce-posg
	$(BIN)/unskew reproduce gedik --out out/reproduce-gedik
	$(BIN)/unskew reproduce deployments --out out/reproduce-deployments

.PHONY: clean
clean: ## remove the virtual environment and build leftovers
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

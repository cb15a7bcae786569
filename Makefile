# Everything a newcomer needs: `make study` and `make test`, on a machine with Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RESULTS ?= results/quickstart
SYSTEM_TESTS ?= system or slow

# The models are small: one thread a process is faster than many that wait for each other.
export OMP_NUM_THREADS ?= 1

.PHONY: help setup study test test-system lint format bench reproduction clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

setup: $(READY) ## make the virtual environment where it is missing or out of date

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(PIP_OPTIONS) --editable '.[dev]'
	touch $(READY)

study: $(READY) ## run the quickstart study (under 5 minutes on two cores) and print its table
	$(BIN)/python run_study.py run search_spaces/quickstart.yaml --results $(RESULTS)

test: $(READY) ## the tests that need neither servers nor minutes
	$(BIN)/python -m pytest -m "not system and not slow" -n 2

test-system: $(READY) ## the tests that start Ray, servers or a browser, and the longest of the others
	$(BIN)/python -m pytest -m "$(SYSTEM_TESTS)" -n 2 --dist loadfile

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## what a step costs, as ratios measured in one run, and what a large study takes to run and to read
	$(BIN)/python -m benchmarks.step
	$(BIN)/python -m benchmarks.kernels
	$(BIN)/python -m benchmarks.batch_sizes
	$(BIN)/python -m benchmarks.node_data
	$(BIN)/python -m benchmarks.gpu_step
	$(BIN)/python -m benchmarks.seeds_together
	$(BIN)/python -m benchmarks.precision
	$(BIN)/python -m benchmarks.paper_cost
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.pool
	$(BIN)/python -m benchmarks.live_view
	$(BIN)/python -m benchmarks.study_costs

reproduction: $(READY) ## tables and docs/fidelity.md from the kept records
	for study in reports/reproduction/*/; do $(BIN)/python aggregate.py tables $$study || exit 1; done
	$(BIN)/python aggregate.py fidelity reports/reproduction --out docs/fidelity.md

clean: ## remove what the tools left; keeps data and results
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Every target does the set-up it needs: `make demo` and `make test` work in a fresh clone.
SHELL := /bin/bash
VENV  := .venv
PY    := $(VENV)/bin/python
# torch is large, so only CI has it without asking.  Of the version named here a CPU-only build is
# taken where pip finds one (0.2 GB instead of the several that come with CUDA).
CI    ?= false
comma := ,
TORCH := $(if $(filter true,$(CI)),'torch==2.13.*')
READY := $(VENV)/.ready$(if $(TORCH),-with-torch)
# A project of its own, which a source distribution does not have.
PAPER := $(if $(wildcard paper/pyproject.toml),-e paper)

# The tests and the pages start many processes: each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-data coverage quick oldest lint format bench docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(READY)  ## make .venv and install the package with everything it can use

# The newest Python that is at least 3.11, unless PYTHON= says otherwise.
$(READY): pyproject.toml $(wildcard paper/pyproject.toml)
	@set -e; \
	for p in $(PYTHON) python3.14 python3.13 python3.12 python3.11 python3 python; do \
	  if command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	  then python=$$p; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "imcc needs Python 3.11 or newer; none was found (set PYTHON=/path/to/python)" >&2; exit 1; fi; \
	echo "setting up $(VENV) with $$($$python --version)"; \
	$$python -m venv $(VENV); \
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[all,docs,dev$(if $(TORCH),$(comma)gpu-tests)]' $(PAPER) $(TORCH)
	@touch $@

demo: $(READY)  ## the main job on real data: compare five methods on yeast, and report
	@mkdir -p imcc-demo
	@$(VENV)/bin/imcc experiment run quick -o imcc-demo/quick.sqlite -j -1
	@$(VENV)/bin/imcc compare imcc-demo/quick.sqlite --metric average_precision
	@$(VENV)/bin/imcc report imcc-demo/quick.sqlite

# One thread per process: there are as many processes as cores.  Neighbouring tests share what they
# have fitted, so each process begins with half of them in order and takes over when it is done.
TEST_THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(TEST_THREADS) $(PY) -m pytest -n auto --dist worksteal

test: $(READY)  ## the whole test suite, and the quick tests of paper/
	$(PYTEST) $(ARGS)
	$(if $(PAPER),$(MAKE) -C paper test)

test-data: $(READY)  ## the tests that need the data files, which IMCC_DATA_MIRROR names
	$(PYTEST) -m data

coverage: $(READY)  ## the whole test suite, with the coverage of all tests (takes twice as long)
	$(PYTEST) --cov --cover-all

quick: $(READY)  ## the tests without the slow ones
	$(PYTEST) -m "not slow and not data"

# The core dependencies only, each in the oldest version that is allowed: tests that need an extra are
# skipped (conftest.py).  With QUICK=true, what CI has time for: the mathematics and the classifier.
OLDEST_TESTS := $(if $(filter true,$(QUICK)),-m "not slow and not data" tests/math/test_*.py tests/test_metrics.py \
  tests/estimators/test_imcc.py,tests src)

oldest:  ## the tests with the oldest core dependencies that pyproject.toml allows (QUICK=true: some)
	python3 -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e . pytest pytest-cov pytest-xdist hypothesis \
	  'polars==1.0.*' 'pandas==2.2.*' 'numpy==1.26.*' 'scipy==1.14.*' 'scikit-learn==1.6.*' 'joblib==1.4.*' 'threadpoolctl==3.1.*' 'lightgbm==4.6.*'
	CI=false $(TEST_THREADS) .venv-oldest/bin/python -m pytest -n auto --dist worksteal $(OLDEST_TESTS)

lint: $(READY)  ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(READY)  ## let ruff format and fix
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(READY)  ## the speed and memory table of docs/performance.md
	$(MAKE) -C paper bench

docs: $(READY)  ## build the documentation into docs/_build/html
	$(VENV)/bin/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	$(PY) -m imcc_paper.reports docs/_build/html/reports
	$(PY) docs/check_links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-oldest docs/_build docs/api/generated docs/auto_examples .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

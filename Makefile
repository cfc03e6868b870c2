# make demo   a sweep of a sample, and where its report lies
# make test   what CI runs, against the built wheel
# make test-frameworks   loops that Lightning, Accelerate and others run
# make docs   the documentation, and where it lies
#
# All make .venv with $(PYTHON) where it is missing. CONSTRAINTS=/dev/null takes whatever torch there is.
# PROCESSES=0 runs the tests one after the other.

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
SAMPLE ?= samples/augment_resnet.py
DEMO ?= pindiag-runs/demo
# As many as CI has cores.
PROCESSES ?= 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Most modules of torch and pandas are never imported; those that are get compiled then.
INSTALL := $(PIP) install --no-compile
SOURCES := $(shell find pindiag templates -type f -not -name '*.pyc') README.md LICENSE

.PHONY: demo test test-frameworks docs lint clean

demo: $(VENV)/installed
	$(BIN)/pindiag run $(SAMPLE) --sweep --budget 1m -o $(DEMO) --force
	@echo "report: $(abspath $(DEMO)/report.html)"

test: $(VENV)/installed $(VENV)/tools lint
	PINDIAG_EXPECT_WHEEL=1 $(BIN)/pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder

test-frameworks: $(VENV)/frameworks
	PINDIAG_EXPECT_WHEEL=1 $(BIN)/pytest tests/frameworks

docs: $(VENV)/installed
	$(INSTALL) --constraint $(CONSTRAINTS) "$$(echo dist/*.whl)[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir site
	@echo "documentation: $(abspath site/index.html)"

lint: $(VENV)/installed $(VENV)/tools
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/mypy

# What the package needs, from its own metadata; pip keeps what is already there.
$(VENV)/requirements: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(INSTALL) --constraint $(CONSTRAINTS) .
	@touch $@

# Never the checkout itself: what is tested and shown is what users install.
$(VENV)/installed: $(VENV)/requirements $(SOURCES)
	rm -rf dist
	$(PIP) wheel --no-deps --wheel-dir dist .
	$(INSTALL) --force-reinstall --no-deps dist/*.whl
	@touch $@

$(VENV)/tools: $(VENV)/requirements | $(VENV)/installed
	$(INSTALL) --constraint $(CONSTRAINTS) "$$(echo dist/*.whl)[test]"
	@touch $@

$(VENV)/frameworks: $(VENV)/tools | $(VENV)/installed
	$(INSTALL) --constraint $(CONSTRAINTS) "$$(echo dist/*.whl)[frameworks]"
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) dist build site

# make demo: sets up .venv and runs the main job.   make test: sets up .venv and passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed
STAMP := $(VENV)/.installed-tests
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test lint types unit wheel campaigns bench clean

demo: $(RUN_STAMP)
	$(BIN)/python tools/demo.py

test: lint types unit wheel

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/python tools/type_tree.py
	MYPYPATH=build/types $(BIN)/mypy -p hideaway

unit: $(STAMP)
	$(BIN)/python tools/type_tree.py
	$(BIN)/python -m pytest -n 2 -m "not campaign" tests
	$(BIN)/python -m pytest --doctest-modules -p no:cacheprovider build/types/hideaway
	$(BIN)/python -m pytest --doctest-glob='*.md' README.md docs

wheel: $(STAMP)
	$(BIN)/python tools/check_wheel.py

campaigns: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m campaign tests

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist demo-out *.egg-info

$(RUN_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt setuptools wheel
	$(PIP) install --no-build-isolation -c constraints.txt -e .
	touch $@

$(STAMP): $(RUN_STAMP)
	$(PIP) install --no-build-isolation -c constraints.txt -e '.[hw,triton,test]'
	touch $@

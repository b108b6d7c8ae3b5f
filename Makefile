# make demo: sets up .venv and runs the main job.   make test: sets up .venv and passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types unit wheel campaigns bench clean

demo: $(STAMP)
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

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt setuptools wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[hw,test]'
	touch $@

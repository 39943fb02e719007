PYTHON ?= python3.11
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: install demo test test-lab messages flakes soak lint docs release-check clean

install: $(INSTALLED)

# The constraints hold for build environments too, so that every install is the same one.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
		$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/vrgcn demo

# A process a core, each with one thread: the tests' tensors are too small to be shared out. Each
# begins with a half of the files, so that what the tests of a file share is made once.
test: install lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/lab

# The tests of lab/, the research code beside the package.
test-lab: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal tests/lab

# What errors say, by test, into tests/*/messages.txt; prints the difference.
messages: install
	OMP_NUM_THREADS=1 VRGCN_MESSAGES=write $(BIN)/python -m pytest -n auto --dist worksteal

# Tests that fail now and then: the suite eight times, in random order beside busy processes, on one
# core, with temporary files elsewhere, without real graphs; an hour or more.
flakes: install
	$(BIN)/python -m tests.flakes

# The long tests: kills, full disks, whatever tests/soak/ has; 20 minutes at most.
soak: install
	$(BIN)/python -m tests.soak

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in docs/_build; a warning is an error.
docs: install
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

# A wheel and its sources, checked, installed into an empty environment and used in another folder.
release-check: install
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet '.[release]'
	$(BIN)/python -m tests.release

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -exec rm -rf {} +

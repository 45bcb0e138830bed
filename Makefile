# Every target sets up what it needs; a second run starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
SITE := docs/_build/html
MINIMUM := .venv-minimum

.PHONY: install install-torch demo test daily test-gpu test-long test-minimum audit lint format docs paper test-wheel release-check \
	bench bench-full reproduce clean

install: $(READY)

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

# any build will do, one without CUDA's gigabytes too: every operation is tested on CPU tensors
install-torch: $(READY)
	$(BIN)/python -m pip install --quiet 'torch==2.13.0'

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

# judgements on 200 draws of many kinds of data; the table is out/calibration.md
daily: $(READY)
	PYTHONPATH=src $(BIN)/python tests/calibrate.py

test-long: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m long -o faulthandler_timeout=0

# on a machine with a CUDA device, and torch for it installed in .venv
test-gpu: $(READY)
	$(BIN)/python -m pytest tests/test_torch.py tests/test_backends.py
	$(BIN)/python benchmarks/gpu.py

# The tests under the least versions that pyproject.toml states, in an environment of their own.
test-minimum:
	test -x $(MINIMUM)/bin/python || $(PYTHON) -m venv $(MINIMUM)
	$(PYTHON) .ci/minimum.py > $(MINIMUM)/constraints.txt
	$(MINIMUM)/bin/python -m pip install --quiet --editable '.[test]' -c $(MINIMUM)/constraints.txt
	$(MINIMUM)/bin/python -m pytest -n auto --dist worksteal

# Dependencies with known weaknesses, by the Python Packaging Advisory Database; a checkout of it may be named
ADVISORIES ?= $(VENV)/advisory-database
audit: $(READY)
	test -d $(ADVISORIES) || git clone --quiet --depth 1 https://github.com/pypa/advisory-database $(ADVISORIES)
	$(BIN)/python .ci/audit.py $(ADVISORIES)

# The site, docs/_build/html: pages, reference and a gallery that is run. A warning is an error.
docs: $(DOCS_READY)
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -W --keep-going -q -b html -d docs/_build/doctrees docs $(SITE)
	@echo "open $(SITE)/index.html"

# The pages of docs/theory as one PDF. Debian: apt-get install latexmk texlive-latex-extra texlive-fonts-recommended tex-gyre
PAPER := docs/_build/paper
paper: $(DOCS_READY)
	@command -v latexmk > /dev/null || { echo "make paper needs latexmk and LaTeX; the Makefile names the packages"; exit 1; }
	$(BIN)/sphinx-build -q -b latex -c docs/paper -d docs/_build/paper-doctrees docs $(PAPER)
	cd $(PAPER) && latexmk -pdf -interaction=nonstopmode -halt-on-error -silent theory.tex
	@echo "open $(PAPER)/theory.pdf"

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $(DOCS_READY)

# Wheel and sdist in dist/, and the tests on them with core dependencies only; for several Pythons:
# make test-wheel PYTHONS="python3.11 python3.13"
PYTHONS ?= $(PYTHON)
test-wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build
	for python in $(PYTHONS); do .ci/test-wheel $$python || exit 1; done

# Everything that a machine can say about a release; the rest is in docs/development/releasing.md.
release-check: lint test docs test-wheel test-minimum audit
	$(BIN)/python .ci/release.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The paper's figures, table and verdicts in out/reproduction: hours; `make reproduce QUICK=--quick`: minutes
reproduce: $(READY)
	$(BIN)/python -m reproduction all $(QUICK)

bench: $(READY)
	$(BIN)/python benchmarks/time_to_solution.py --quick

bench-full: $(READY)
	$(BIN)/python benchmarks/time_to_solution.py --full --out out/benchmarks

clean:
	rm -rf $(VENV) $(MINIMUM) out build dist docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache

# Every target does all of its own set-up in .venv; nothing has to be activated and no MPI has to be installed.
#
#   make run [ARGS="..."]     the flagship experiment on 8 MPI ranks (ARGS are passed on; RANKS=4 for four)
#   make lectures             the lectures in JupyterLab, as notebooks in lectures/ (yours to write in: git does not see them)
#   make warm [ARGS="-j 4"]   compile ahead all that the lectures and experiments would wait for (about 4 minutes)
#   make test [ARGS="..."]    the tests, on all cores, with everything they need (ARGS="-n 0": in one process)
#   make test-full            all tests, from an empty cache, and what takes long by nature: claims in full, ...
#   make test-versions        the core's tests with the lowest and newest NumPy, Numba and SciPy, and every Python there is
#   make cold                 a short run of the flagship that finds no compiled code, and one that finds all of it
#   make claims               measure all claims again: their record (docs/claims.jsonl), the badge, the pages (4 minutes)
#   make check                the quick loop: fast tests and ruff
#   make tools                what the tests and the documentation need, into .venv
#   make lint                 ruff alone
#   make types                the type check alone
#   make docs                 the documentation, lectures executed, into docs/_build/html
#   make sheets [ARGS="..."]  exercise sheets and solutions, into lectures/sheets/ (ARGS="04 --only 1,3": some; --paper: PDF)
#   make grade ARGS="..."     grade the sheets of a class (ARGS="FOLDER --sheet 04 --out grades.csv")
#   make slides [ARGS="..."]  the lectures as slides, executed, into lectures/slides/ (ARGS="04": one; --no-run: not executed)
#   make book [ARGS="..."]    the lectures for print, executed, into lectures/book/: one PDF, and one for each (needs chromium)
#   make pictures [ARGS="04"] the lectures' main pictures as files, for readers on a code host, into figures/lectures/
#   make times [ARGS="..."]   how long each lecture runs, into the table of notebooks/README.md (ARGS="10 11": some)
#   make newcomer [ARGS="..."] time what somebody new does: a clean clone, installed, README, lectures 1 to 4 (6 minutes)
#   make figures [ARGS="..."] every figure again, from the records beside them (ARGS=--list: from what); without ARGS the
#                             pictures of the lectures, too
#   make bench [ARGS="..."]   the speed table
#   make full-size            all of RCV1's rows (synthetic) on 8 ranks, Mem-SGD's figure 2, and beside scikit-learn (an hour)
#   make clean                remove what was built (runs/ and .venv stay)
#   make distclean            remove .venv, too
#
# Another Python: make PYTHON=python3.12 run

PYTHON ?= python3
RANKS  ?= 8
ARGS   ?=

VENV := .venv
PY   := $(VENV)/bin/python
PIP  := $(PY) -m pip --disable-pip-version-check

# An editable install points to this folder, so a clone that was moved installs itself again.
HERE  := $(shell pwd | cksum | cut -d ' ' -f 1)
STAMP := $(VENV)/.installed-$(HERE)

.PHONY: help run lectures warm sheets grade slides book pictures times newcomer figures test test-full test-versions cold claims check tools lint types docs bench full-size clean distclean

help:
	@sed -n 's/^#   make/  make/p' Makefile

run: $(STAMP)-mpi
	$(VENV)/bin/mpirun -n $(RANKS) $(PY) -m theory.experiment $(ARGS)

# Lab opens on the index; notebooks/lab has settings, so that it asks nobody for news.  Its root is this folder, so that
# links from lectures to the documentation work, too.
LAB := --LabApp.default_url=/lab/tree/lectures/index.ipynb --LabApp.app_settings_dir=notebooks/lab

lectures: $(STAMP)-lectures,mpi
	@echo 'The first run of a lecture compiles, for half a minute to a minute and a half (the table in notebooks/README.md); `make warm` compiles everything ahead (about 4 minutes).'
	@$(PY) notebooks/prepare.py
	$(PY) -m jupyterlab --notebook-dir=. $(LAB) $(ARGS)

warm: $(STAMP)-mpi
	$(PY) -m theory.experiment warm $(ARGS)

# Each process begins with its own part of the list and later takes from the others: neighbours share what they compile.
PYTEST := $(PY) -m pytest -n auto --dist worksteal

test: $(STAMP)-test
	$(PYTEST) $(ARGS)

# An empty cache folder for one recipe, removed when that ends.
COLD := cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && export THEORY_CACHE="$$cache"

test-full: $(STAMP)-test,pepit,book
	$(COLD) && $(PYTEST) -m "" $(ARGS)

test-versions:
	$(PYTHON) tests/versions.py $(ARGS)

cold: $(STAMP)-test
	@$(COLD) && \
	run() { $(PY) -m theory.experiment --methods sgd,qsgd-4 --steps 50 --out "$$cache" 2>&1; } && \
	run > "$$cache/first" && grep -q compiling "$$cache/first" && \
	run > "$$cache/second" && ! grep compiling "$$cache/second" && \
	echo "a short run from an empty cache folder, and one that compiles nothing: done" || \
	{ tail -n 40 "$$cache/first" "$$cache/second"; exit 1; }

claims: $(STAMP)-test
	$(PY) -m theory.experiment verify --quick --write docs/claims.jsonl --badge figures/ledger.svg --errata docs
	$(PY) docs/_make.py

check: $(STAMP)-test
	$(PY) -m ruff check --quiet . && $(PY) -m ruff format --check --quiet .
	$(PY) -m pytest -m "not slow and not full" -x -q $(ARGS)

tools: $(STAMP)-test,pepit $(STAMP)-docs

lint: $(STAMP)-test
	$(PY) -m ruff check --quiet . && $(PY) -m ruff format --check --quiet .

types: $(STAMP)-test
	$(PY) -m mypy

docs: $(STAMP)-docs
	$(PY) -m sphinx -W --keep-going -b html $(ARGS) docs docs/_build/html

sheets: $(STAMP)-lectures,mpi
	$(PY) notebooks/sheets.py $(ARGS)

grade: $(STAMP)-lectures,mpi
	@$(PY) notebooks/grade_class.py $(ARGS)

slides: $(STAMP)-lectures,mpi
	$(PY) notebooks/slides.py $(ARGS)

book: $(STAMP)-lectures,mpi,book
	$(PY) notebooks/book.py $(ARGS)

pictures: $(STAMP)-lectures,mpi
	$(PY) notebooks/pictures.py $(ARGS)

times: $(STAMP)-test
	$(PY) notebooks/times.py $(ARGS)

newcomer:
	$(PYTHON) benchmarks/newcomer.py $(ARGS)

figures: $(STAMP)-lectures,mpi
	$(PY) -m theory.experiment figures $(ARGS)
	$(if $(ARGS),,$(PY) notebooks/pictures.py)

bench: $(STAMP)-mpi
	$(PY) -m benchmarks $(ARGS)

full-size: $(STAMP)-mpi
	$(PY) -m benchmarks full-size-ranks
	$(PY) -m theory.experiment study mem-sgd-full --markdown docs/studies
	$(PY) -m benchmarks full-size

# One stamp for each set of extras: installed again when pyproject.toml changed, or when the clone was moved.
$(STAMP)-%: pyproject.toml | $(PY)
	@echo "Installing theory with the extra [$*] into $(VENV); the first time takes a minute or two."
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip >/dev/null  # a .venv made by uv comes without pip
	@{ $(PIP) install --quiet --editable ".[$*]" & pip=$$!; seconds=0; \
	  while kill -0 $$pip 2>/dev/null; do sleep 1; seconds=$$((seconds + 1)); [ $$((seconds % 4)) -ne 0 ] || \
	    echo "  installing for $$seconds s: $$(ls -d $(VENV)/lib/python3*/site-packages/*.dist-info 2>/dev/null | wc -l) packages are there"; \
	  done; wait $$pip; }
	@touch $@

$(PY):
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "No $(PYTHON) was found. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$("$(PYTHON)" --version 2>&1), and theory needs Python 3.11 or newer."; \
	  echo "If there is one under another name, say so: make PYTHON=python3.12"; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }

clean:
	rm -rf build dist docs/_build docs/lectures docs/api docs/changelog.md .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find theory tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

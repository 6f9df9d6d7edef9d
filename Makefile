# `make lab` and `make test` need Python 3.11, 3.12 or 3.13 and a package index the first time, and no network after that.
# What `make bundle` makes needs no network at all.
.DEFAULT_GOAL := help
.PHONY: help lab test test-all notebooks notebooks-check bundle slides incidents lab04-page bundle-check bench capstone-check vllm-check vllm-live strength bench-browser browser hub-test lint lock clean FORCE

# PYTHON=/path/to/python3.12 chooses one; otherwise the newest usable Python on the PATH is taken.
PYTHON ?=
MY_LABS ?= my-labs
NN ?=
CHECK ?=

# `.venv/bin/python -m tool` also works where a script's first line would not: in a folder whose path is long or has spaces.
RUN := .venv/bin/python -m
INSTALL := $(RUN) pip install --disable-pip-version-check -qq --progress-bar off --no-compile --no-deps
# A process for each core, four at most; each file stays in one of them. Notebooks run one after the other: of two kernels
# that start at the same moment one may be given the other's port.
SIDE_BY_SIDE := -n auto --maxprocesses=4 --dist loadfile
# A deeper notebook without an exercise is its own solution: byte by byte the same, so it runs once.
SOLUTIONS = $(shell for file in solutions/*.ipynb; do cmp -s "$$file" "labs/$$(basename "$$file")" || echo "$$file"; done)
STAMP := .venv/.installed
DEV_STAMP := .venv/.installed-dev

# The editable install remembers this folder's path, and .venv/ points to the Python it was made with: when the folder
# has moved or that Python is gone, install again.
ifneq "$(shell cat $(STAMP) 2>/dev/null)|$(wildcard .venv/bin/python)" "$(CURDIR)|.venv/bin/python"
$(STAMP): FORCE
endif

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-22s %s\n' "$$name" "$$text"; done

lab: $(STAMP)  ## install what is missing, copy new labs to my-labs/, open JupyterLab there (ARGS="--no-browser --port=9000")
	@$(RUN) course.desk.workspace --to="$(MY_LABS)" $(ARGS)

test: $(STAMP)  ## unit tests, then every notebook compared with its stored outputs
	$(RUN) pytest tests --ignore=tests/browser --ignore=tests/hub $(SIDE_BY_SIDE) $(ARGS)
ifneq ($(wildcard labs/*.ipynb),)
	$(RUN) pytest --nbval labs/ $(SOLUTIONS) $(ARGS)
else
	@echo "No notebooks in labs/ yet: nothing for nbval to run."
endif

test-all: export COURSE_TESTS := all
test-all: $(DEV_STAMP)  ## before a release: what is slow by nature too (ROOM=engine for one folder of tests, when it changed)
ifdef ROOM
	$(RUN) pytest tests/$(ROOM) $(SIDE_BY_SIDE) $(ARGS)
else
	$(MAKE) test
	$(MAKE) notebooks-check
	$(MAKE) browser
endif

notebooks: $(STAMP)  ## build and execute the notebooks from solutions/*.py (NN=03 for one, CHECK=1 to compare only)
	$(RUN) course.notebooks build $(if $(CHECK),--check) $(NN)
	@$(RUN) course.notebooks.catalogue $(if $(CHECK),--check)

notebooks-check: $(STAMP)  ## compare the stored notebooks with a fresh build, change nothing (QUICK=1: all but outputs)
	$(RUN) course.notebooks build --check $(if $(QUICK),--no-run) $(NN)
	@$(RUN) course.notebooks.catalogue --check

bundle: $(STAMP)  ## the course with its packages in one file, for rooms without a network: dist/*.tar (WITH_SOLUTIONS=1)
	@$(RUN) course.desk.bundle $(if $(WITH_SOLUTIONS),--with-solutions)

slides: $(STAMP)  ## slides of the labs, each one HTML file that needs no network: dist/slides/ (NN=04 for one)
	@$(RUN) course.notebooks.slides $(NN)

incidents: $(STAMP)  ## twelve pages of engines in trouble, one for each pair, and slides with the answers: dist/incidents/
	@$(RUN) course.notebooks.drill

lab04-page: $(STAMP)  ## lab 04's timelines as one HTML file that needs no Python and no network: dist/lab04.html
	@mkdir -p dist && rm -f dist/lab04.html && $(RUN) course.notebooks.one_page dist/lab04.html

bundle-check: bundle  ## unpack that file elsewhere and open a lab from it with every package index out of reach
	$(RUN) tests.bench.offline $(ARGS)

# engine_steps.py is not among them: it records on a GPU, with PyTorch, which is in no lock file of the course.
bench: $(DEV_STAMP)  ## measure the simulator beside SimPy, the decode-step kernel, the reader of logs, then the language model
	@set -e; for script in tests/bench/simulator.py tests/bench/kernel.py tests/bench/look.py tests/bench/lm.py; do \
	  echo "== $$script"; PYTHONPATH=. .venv/bin/python "$$script" $(ARGS); done

# Not part of `make test`, which compares the course with what is recorded in tests/data/vllm/.
vllm-check: $(STAMP)  ## what vLLM's own scheduler does with small workloads, against the recorded (fetches 1 GB; ARGS=--write)
	@$(RUN) tools.vllm_check $(ARGS)

capstone-check: $(STAMP)  ## lab 18: does thought beat chance? All searches with seeds (ARGS=--write for docs/capstone.md)
	PYTHONPATH=. .venv/bin/python tests/bench/capstone.py $(ARGS)

strength: $(STAMP)  ## plant wrong changes one by one, and count those that the tests notice (ARGS="queueing lab03 -j 2")
	PYTHONPATH=. .venv/bin/python tests/bench/strength.py $(ARGS)

bench-browser: $(DEV_STAMP)  ## measure from key press to changed figure in JupyterLab (needs a chromium on the PATH)
	$(RUN) tests.browser.latency $(ARGS)

browser: $(DEV_STAMP)  ## drive the labs in JupyterLab with Chromium (needs a chromium on the PATH)
	$(RUN) pytest tests/browser -n 2 $(ARGS)

# The hub is installed as an instructor would: the wheel of the course and jupyterhub in one Python, npm's proxy beside it.
hub-test: $(DEV_STAMP) .hub/.installed  ## a JupyterHub with thirty users on this machine (needs npm and a chromium on the PATH)
	@rm -rf .hub/wheel && $(RUN) hatchling build -t wheel -d .hub/wheel > /dev/null 2>&1
	@.hub/venv/bin/python -m pip install --disable-pip-version-check -qq --no-deps --force-reinstall .hub/wheel/*.whl
	$(RUN) pytest tests/hub -n 0 $(ARGS)

HUB_PROXY := configurable-http-proxy@5.3.0
.hub/.installed: requirements.lock requirements-hub.lock
	@command -v npm > /dev/null || { echo "No npm on the PATH: JupyterHub's proxy comes from it (on Debian and Ubuntu: the package npm)."; exit 1; }
	@rm -rf .hub && mkdir .hub && $(RUN) venv .hub/venv
	@.hub/$(INSTALL:.venv/%=venv/%) --require-hashes -r requirements.lock -r requirements-hub.lock
	@npm install --prefix .hub --silent --no-save --no-fund --no-audit $(HUB_PROXY)
	@touch $@

vllm-live: $(STAMP)  ## install the real vLLM into .vllm/ (3.4 GB), record course/data/vllm again, and print what moved
	@$(RUN) tools.vllm_live $(ARGS)

lint: $(DEV_STAMP)  ## ruff: format and rules; import-linter: who may import whom; mypy: types of course/
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	.venv/bin/python -c "from importlinter.cli import lint_imports_command as check; check()" --no-logo --no-cache
	$(RUN) mypy

lock:  ## resolve the lock files and environment.yml again (needs uv; UPGRADE=--upgrade for newer versions)
	uv pip compile $(UV_OPTIONS) pyproject.toml --group build --group test -o requirements.lock
	uv pip compile $(UV_OPTIONS) --group dev -c requirements.lock -o requirements-dev.lock
	uv pip compile $(UV_OPTIONS) --group hub -c requirements.lock -o requirements-hub.lock
	@sed '/^      - "/d' environment.yml > environment.yml.new
	@sed -n 's/^\([a-z0-9].*[^ ]\) *\\$$/      - "\1"/p' requirements.lock >> environment.yml.new
	@mv environment.yml.new environment.yml
# One version of each package for all three Pythons (fewest), so that everyone sees the same numbers.
# No index address in the files: whoever installs uses the index that their pip knows.
UV_OPTIONS = --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
  --custom-compile-command "make lock" $(UPGRADE)

clean:  ## remove .venv/ and caches; my-labs/ stays
	rm -rf .venv .hub .pytest_cache .ruff_cache .mypy_cache .hypothesis dist build

# course/desk/install.py does the work, with whichever Python is found here; it waits where another `make` installs.
$(STAMP): requirements.lock pyproject.toml
	@test -w . || { echo "This folder is read-only, so .venv/ cannot be made in it: copy the project to a folder of yours."; exit 1; }
	@found=.venv/bin/python; $$found -m pip --version >/dev/null 2>&1 || { found=; \
	  for python in $(if $(PYTHON),"$(PYTHON)",python3.13 python3.12 python3.11 python3 python); do \
	    "$$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 || continue; \
	    found="$$python"; break; done; }; \
	  if [ -z "$$found" ]; then \
	    echo "No usable Python found: the course needs 3.11, 3.12 or 3.13 with its venv module (on Debian and Ubuntu: the package python3-venv)."; \
	    echo "Tried: $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3 python). Name one with: make PYTHON=/path/to/python3"; exit 1; fi; \
	  "$$found" -P course/desk/install.py "$(CURDIR)"

$(DEV_STAMP): $(STAMP) requirements-dev.lock
	@echo "Installing the development tools into .venv/ ..."
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $(DEV_STAMP)

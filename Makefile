# make app    install and start the app      make test          the model, every page, a few journeys
# make serve  the same, for a whole class    make test-browser  Chromium; SHARD=1/4 for a quarter
# make bench  speed bars, as ratios          make test-long     the rest: data sets, servers, hours
# make load   a class of 30 at once          make check         lint, and tests near to a change
# make lint   ruff, imports, oxlint          make types         basedpyright
# make site   a web site with live pages     make docs          the documentation alone
PORT ?= 8501
PYTHON ?= python3
DATA ?=
SHARD ?= 1/1
REPLICAS ?= 1
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# What random laws are tried on follows from the commit, so that one is red or green for good.
SEED ?= $(shell git rev-parse --short HEAD 2>/dev/null)
WORKERS := $(PYTEST) --hypothesis-seed=$(SEED) -n 2 --dist worksteal --reruns 1 -r fER
UNLIMITED := $(PYTEST) --timeout 0 -o faulthandler_timeout=0
# Root needs no sudo; without either, apt is left to the user.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -n)

.PHONY: app serve test check test-browser test-long load bench lint types format

app: $(VENV)/app.installed
	$(BIN)/headlight --port $(PORT)

# Everybody who can reach this machine can open the app: for a class, on purpose.
serve: $(VENV)/app.installed $(if $(filter-out 1,$(REPLICAS)),nginx)
	$(BIN)/headlight --serve --port $(PORT) --replicas $(REPLICAS)

# What failed is tried once more, and listed.
test: $(VENV)/test.installed lint types chromium
	$(WORKERS)

check: $(VENV)/test.installed lint
	$(BIN)/python -m tests.check

test-browser: $(VENV)/test.installed chromium
	$(WORKERS) -m "browser and not long" --splits $(lastword $(subst /, ,$(SHARD))) --group $(firstword $(subst /, ,$(SHARD)))

test-long: $(VENV)/test.installed chromium
	$(BIN)/python -m pip install -q -e ".[long]"
	HEADLIGHT_DATA=$(DATA) $(UNLIMITED) -m long
	$(UNLIMITED) -m hypothesis --hypothesis-profile=long

load: $(VENV)/test.installed chromium
	$(BIN)/python -m tests.load class --json load.json

bench: $(VENV)/test.installed chromium
	$(BIN)/python -m tests.bench --json bench.json

# The pictures in the README but that of SmolLM2, which is not shipped.
.PHONY: screenshots
screenshots: $(VENV)/test.installed chromium
	$(BIN)/python -m tests.browser.screenshots

# The documentation: renews what it takes out of the code, and builds the site into site/.
.PHONY: docs
docs: $(VENV)/test.installed
	$(BIN)/python -m tests.documentation

# A web site for any static host: a first page, the documentation and live pages.
SITE ?= public
.PHONY: site
site: $(VENV)/test.installed
	$(BIN)/python -m tests.site $(SITE)

# Walks the checklist of a release, and leaves the wheel in dist/.
.PHONY: release
release: $(VENV)/test.installed chromium
	$(BIN)/python -m tests.release

# Renews the versions and hashes that the Dockerfile installs. PyTorch has a line of its own there.
.PHONY: lock
lock: $(VENV)/test.installed
	$(BIN)/python -m pip install -q uv
	echo torch > $(VENV)/not_locked
	$(BIN)/uv pip compile requirements.txt -o requirements.lock --upgrade --quiet \
	  --excludes $(VENV)/not_locked --python-version 3.12 --python-platform linux \
	  --only-binary :all: --generate-hashes --no-emit-index-url --no-annotate \
	  --custom-compile-command "make lock"
	$(BIN)/python -m pytest tests/app/test_dockerfile.py

# Renews the table of seconds by which `make check` fills its minute.
.PHONY: durations
durations: $(VENV)/test.installed chromium
	$(WORKERS) -m "not long" --junitxml .durations.xml
	$(BIN)/python -m tests.check --read .durations.xml

# Plants faults in model/, or app/, and counts those that the tests notice.
OF ?= model
.PHONY: mutants
mutants: $(VENV)/test.installed
	$(BIN)/python -m tests.mutants --of $(OF)

lint: $(VENV)/test.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/oxlint --deny-warnings app

# Half a minute of processor time.
types: $(VENV)/test.installed
	$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(VENV)/test.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null || \
	  { echo "Headlight needs Python 3.11 or newer as $(PYTHON)."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is missing; installing python3-venv."; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq python3-venv || \
	  { echo "Please run: apt-get install python3-venv"; exit 1; }; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/app.installed: requirements.txt pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install -q -r requirements.txt
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(VENV)/test.installed: pyproject.toml $(VENV)/app.installed
	$(BIN)/python -m pip install -q -e ".[test]"
	@touch $@

# The browser tests drive a Chromium that is already here, or Debian's.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  command -v google-chrome >/dev/null || { \
	  echo "Installing chromium for the browser tests."; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium >/dev/null || \
	  { echo "The browser tests need Chromium. Please run: apt-get install chromium"; exit 1; }; }

# Before several processes: make serve REPLICAS=4.
.PHONY: nginx
nginx:
	@command -v nginx >/dev/null || { \
	  echo "Installing nginx, which leads visitors to one of $(REPLICAS) processes."; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq nginx-light >/dev/null || \
	  { echo "Several processes need nginx. Please run: apt-get install nginx"; exit 1; }; }

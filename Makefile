# The recipes are the interface: what a person and CI call.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

# Outside of the checkout, so that a fresh clone on the same machine does not build DataFusion again.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/tidalite/target
TIDALITE := $(CARGO_TARGET_DIR)/release/tidalite
VENV ?= $(HOME)/.cache/tidalite/venv
PEERS ?= $(HOME)/.cache/tidalite/peers

.PHONY: help
help: ## Lists the recipes
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

.PHONY: build
build: console ## Builds the server, optimised
	cargo build --release --workspace

.PHONY: console
console: ## Builds the web console if Node.js is installed and a source changed; the server embeds it
	sh console/build.sh

.PHONY: demo
demo: console ## Builds, starts the server with some data in it, says how to query it
	cargo build --release --workspace --bin tidalite
	$(TIDALITE) demo

.PHONY: test
test: test-rust tidy test-clients test-console test-packages test-python test-bench simulate fuzz ## Runs all tests

.PHONY: test-rust
test-rust: ## Unit, SQL and server tests
	cargo test --release --workspace

.PHONY: tidy
tidy: build ## Checks what no compiler checks
	$(CARGO_TARGET_DIR)/release/xtask tidy

.PHONY: test-clients
test-clients: build $(VENV)/ready ## A real server and real clients
	TIDALITE_BIN=$(TIDALITE) $(VENV)/bin/python -m pytest -q tests/clients
	TIDALITE_BIN=$(TIDALITE) $(VENV)/bin/python -m pytest -q tests/attacks

.PHONY: test-console
test-console: build ## The web console in a real browser; skipped without Node.js
	TIDALITE_BIN=$(TIDALITE) sh console/test.sh

# As root, $(HOME) is another folder: sudo make install TIDALITE=$HOME/.cache/tidalite/target/release/tidalite
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: install
install: ## Installs the built server with unit, settings, man pages: PREFIX=/usr/local DESTDIR= WITH_DEBUG=yes
	BINARY="$(TIDALITE)" PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" packaging/install.sh install

.PHONY: uninstall
uninstall: ## Removes what `make install` installed; settings and data stay
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" packaging/install.sh uninstall

.PHONY: deb
deb: build ## The Debian package in dist/
	BINARY="$(TIDALITE)" packaging/debian/build.sh dist

.PHONY: test-packages
test-packages: build $(VENV)/ready ## Installation, Debian package (as root), image, manifests, release
	TIDALITE_BIN=$(TIDALITE) $(VENV)/bin/python -m pytest -q tests/packages

PYTHON_PACKAGE := $(CARGO_TARGET_DIR)/python

.PHONY: python
python: build ## The Python package as an importable folder, of what `build` made
	python3 crates/python/pack.py $(CARGO_TARGET_DIR)/release $(PYTHON_PACKAGE)

.PHONY: wheel
wheel: build ## The Python package as a wheel in $(CARGO_TARGET_DIR)/wheel.whl
	python3 crates/python/pack.py $(CARGO_TARGET_DIR)/release $(CARGO_TARGET_DIR)/wheel.whl

.PHONY: test-python
test-python: python $(VENV)/ready ## The Python package: real engine, real server, every frame library
	PYTHONPATH=$(PYTHON_PACKAGE) TIDALITE_BIN=$(TIDALITE) $(VENV)/bin/python -m pytest -q tests/python

.PHONY: test-bench
test-bench: $(VENV)/ready ## What tidalite-bench computes; its generators are tested with the Rust code
	$(VENV)/bin/python -m pytest -q tests/bench

.PHONY: bench
bench: build $(VENV)/ready ## Tidalite beside other databases; ARGS="ingress --runs 5"
	cd bench && TIDALITE_BIN=$(TIDALITE) TIDALITE_GENERATE=$(CARGO_TARGET_DIR)/release/tidalite-generate PEERS=$(PEERS) \
		python3 -m tidalite_bench $${ARGS:-all --small}

$(VENV)/ready: tests/clients/requirements.txt tests/python/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt -r tests/python/requirements.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/pandas2 pandas==2.3.3 pytz==2026.6
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/duckdb1 duckdb==1.5.5 duckdb-extension-postgres-scanner==1.5.5
	touch $@

.PHONY: fuzz
fuzz: ## Replays the corpora of all fuzz targets, then fuzzes the line parser and three others, by the day, for 30 s each
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz sh fuzz/today.sh $${SECONDS_EACH:-30}

.PHONY: fuzz-all
fuzz-all: ## Every fuzz target for ten minutes; SECONDS_EACH=3600 for longer
	for target in $$(sh fuzz/targets.sh); do \
		CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz sh fuzz/run.sh $$target $${SECONDS_EACH:-600} || exit 1; \
	done

.PHONY: simulate
simulate: ## Random clients, faults and power losses for a minute; MINUTES=30 FROM=1000 or SEED=7
	SIMULATE_SECONDS=$$(( $${MINUTES:-1} * 60 )) SIMULATE_FROM=$${FROM:-} SIMULATE_SEED=$${SEED:-} \
		cargo test --release --workspace --lib simulation -- --nocapture

.PHONY: kill
kill: build $(VENV)/ready ## Rounds of kill -9 under mixed work; ROUNDS=500
	KILL_ROUNDS=$${ROUNDS:-20} TIDALITE_BIN=$(TIDALITE) $(VENV)/bin/python -m pytest -q -s tests/clients -k kill

.PHONY: fixture
fixture: ## Writes a data folder of this release for tests of later ones; TO=tests/fixtures/format-3
	TIDALITE_FIXTURE=$(CURDIR)/$${TO:?a folder} cargo test --release --workspace -p tidalite --lib a_folder_of_this_release

.PHONY: lint
lint: ## Clippy, with warnings as errors
	cargo clippy --release --workspace --all-targets -- -D warnings

.PHONY: docs
docs: build ## Writes the pages that are generated
	$(TIDALITE) config --markdown > docs/configuration.md
	python3 packaging/settings.py < docs/configuration.md > packaging/tidalite.toml

.PHONY: bench-ingest
bench-ingest: build $(VENV)/ready ## Ingest beside other databases; see bench/ingest.py for what it needs
	TIDALITE_BIN=$(TIDALITE) PEERS=$(PEERS) $(VENV)/bin/python bench/ingest.py $${ARGS:-raw:cpu.ilp:1 raw:cpu.ilp:2}

.PHONY: load
load: build ## A mixed load with a check of every row: MINUTES=30, ARGS="--row-rate 20000"
	cd bench && TIDALITE_BIN=$(TIDALITE) python3 -m tidalite_bench load --minutes $${MINUTES:-30} $${ARGS:-}

.PHONY: soak
soak: build $(VENV)/ready ## The long tests: 500 rounds of kill -9, an hour of fuzzing
	cargo test --release --workspace
	SECONDS_EACH=3600 $(MAKE) fuzz-all
	KILL_ROUNDS=500 TIDALITE_BIN=$(TIDALITE) $(VENV)/bin/python -m pytest -q tests/clients

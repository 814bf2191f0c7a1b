# Moorage: build, test, run. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Tests start thousands of processes: each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
BUILD := .build
RUN_DIR := $(BUILD)/run
CLOUD_DIR := $(BUILD)/cloud
GUEST := $(BUILD)/guest
REPORTS := $(BUILD)/requirements
# An empty PYTHON lets scripts/make-venv.sh choose: /usr/bin/python3 when it is 3.11 or
# later, else python3. It chooses late, because a bare machine gets its Python from apt.
PYTHON ?=
SIM ?=
CLOUD ?=
SEED ?= 1
CLUSTERS ?= 1000
LINES ?= 20000
ROOMS ?= 200
CASES ?= 40
FRAMES ?= 10000
STEPS ?= 100000
KILLS ?= 1000
CUTS ?= 30
# What all runs of chaos and power-cuts add to.
ACCOUNT ?= tests/chaos/history
# More options of tests/chaos/run.py: CHAOS="--go-on --without 'planned failover'"
CHAOS ?=
# Which changes to try: a pattern of modules and functions; and by which tests, if not by
# those of the module's floor.
MUTANTS ?= moorage.jobs.locks.*
TESTS ?=
# All programs, unless some are named: make parity PROGRAMS="hbal hail"
PROGRAMS ?=

LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
FAST := not real and not oracle and not slow
SLOW := (oracle or slow) and not real

.PHONY: all check test run stop bench chaos mutants parity requirements guest lock clean help
.PHONY: histories takeovers pictures clicks looks walks power-cuts chaos-account cloud-deaths fast-tests crashes databases fuzz rooms schema frames stateful cloud-stateful slow-tests real-tests real-packages lint wheel deb cloud-deb repo debian-root cloud-image

all: $(INSTALLED) ## Build .venv from the lock file, with all programs in .venv/bin

$(LOCKED): requirements.lock scripts/make-venv.sh
	@scripts/debian-packages.sh venv
	@PYTHON="$(PYTHON)" scripts/make-venv.sh $(VENV) requirements.lock
	@touch $@

# The project itself, editable: only its metadata and its programs need a new install.
$(INSTALLED): $(LOCKED) pyproject.toml cloud/pyproject.toml setup.py $(wildcard src/moorage/htools/kernel/*.p*)
	@scripts/debian-packages.sh build || echo "Without them the planner runs uncompiled" >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-index \
	  --no-build-isolation -e . -e cloud
	@touch $@

check: lint fast-tests ## Lint, types, floors and the fast tests: no root, no network, no sleep

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --config-file cloud/pyproject.toml
	$(BIN)/lint-imports --no-logo

fast-tests: $(INSTALLED)
	@mkdir -p $(REPORTS)
	$(BIN)/pytest -n 3 --timeout 180 -m "$(FAST)" \
	  --requirements-report $(REPORTS)/fast.json tests

pictures: $(INSTALLED) ## Make the pictures of the page in docs/pictures anew, from a running cluster
	MOORAGE_PICTURES=$(CURDIR)/docs/pictures $(BIN)/pytest tests/web/test_in_a_browser.py

clicks: $(INSTALLED) guest ## Walk the main ways through the page by clicks, on real guests (root)
	$(BIN)/python tests/real/clicks.py

looks: $(INSTALLED) ## Make pictures of every page at three widths, light and dark, to be looked at: WHERE=DIR
	$(BIN)/python scripts/looks.py $(or $(WHERE),$(BUILD)/looks)

fuzz: $(INSTALLED) ## Type odd command lines at a simulated cluster: SEED=1 LINES=20000
	$(BIN)/pytest tests/cli/test_fuzz.py --fuzz-seed $(SEED) --fuzz-lines $(LINES)

crashes: $(INSTALLED) ## The master dies at all pairs of points of every request, each node at each call and more (an hour); ONE_IN=1
	MOORAGE_ONE_IN=$(or $(ONE_IN),1) $(BIN)/pytest -n 2 -m slow \
	  tests/e2e/test_crash.py tests/e2e/test_faults.py tests/e2e/test_store_lost.py \
	  tests/e2e/test_joining.py tests/e2e/test_capacity.py tests/cloud/test_each_step.py

databases: $(INSTALLED) ## Run all tests of the cloud on PostgreSQL as well; make test draws some
	MOORAGE_ONE_IN=1 $(BIN)/pytest -n 2 -m slow tests/cloud

rooms: $(INSTALLED) ## Ask random clusters for room through every door: SEED=1 ROOMS=200
	MOORAGE_SEED=$(SEED) MOORAGE_CLUSTERS=$(ROOMS) $(BIN)/pytest tests/e2e/test_all_kinds_of_room.py

schema: $(INSTALLED) ## Ask RAPI all that its OpenAPI document allows and forbids: SEED=1 CASES=40
	MOORAGE_SEED=$(SEED) MOORAGE_CASES=$(CASES) $(BIN)/pytest tests/api/rapi/test_openapi.py

frames: $(INSTALLED) ## Send malformed frames to a master and its door: SEED=1 FRAMES=10000
	MOORAGE_SEED=$(SEED) MOORAGE_FRAMES=$(FRAMES) $(BIN)/pytest tests/e2e/test_malformed_frames.py

stateful: $(INSTALLED) ## Do anything to simulated clusters, in any order: SEED=1 STEPS=100000
	PYTHONHASHSEED=$(SEED) $(BIN)/pytest tests/stateful --stateful-seed $(SEED) --stateful-steps $(STEPS)

cloud-stateful: $(INSTALLED) ## Do anything to a simulated cloud, in any order: SEED=1 STEPS=100000
	PYTHONHASHSEED=$(SEED) $(BIN)/pytest tests/cloud/test_stateful.py --stateful-seed $(SEED) --cloud-steps $(STEPS)

# Three at once: those with processes of their own wait for half of their time. Who is
# done takes over from the others: a third of all that is slow stands next to each other.
slow-tests: $(INSTALLED) real-packages wheel
	@mkdir -p $(REPORTS)
	$(BIN)/pytest -n 3 --dist worksteal --timeout 1200 --durations 10 -m "$(SLOW)" \
	  --requirements-report $(REPORTS)/slow.json tests

# Each test makes all that it uses (names, addresses, directories, users) for itself. They
# wait more than they compute. Files that take minutes go first.
real-tests: $(INSTALLED) guest deb debian-root cloud-image
	@mkdir -p $(REPORTS)
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --timeout 1200 \
	  --durations 10 -m real \
	  --requirements-report $(REPORTS)/real.json tests

# Packages first, because one program at a time may install some. Then what tells a mistake
# in minutes; then the long ones beside each other, since each leaves the machine idle at
# times. One that fails ends no other; its line names the test.
test: ## Set up and run all tests, the real ones included (root)
	@$(MAKE) real-packages
	@scripts/debian-packages.sh venv build deb
	@$(MAKE) -j -O check FAST="$(FAST) and not sample"
	@$(MAKE) -j slow-tests real-tests

real-packages:
	@scripts/can-run-real.sh 2> >(sed 's/; the same tour.*/; without them: make check/' >&2)

# What the project consists of, for what is built from it.
SOURCES := $(shell find src share -type f -not -name '*.so' -not -path '*/__pycache__/*' -not -path '*.egg-info/*')
WHEELS := $(BUILD)/wheels
WHEEL := $(BUILD)/wheel/.built
DEB := $(BUILD)/deb/.built
CLOUD_WHEELS := $(BUILD)/cloud-wheels
CLOUD_WHEEL := $(BUILD)/cloud-wheel/.built
CLOUD_DEB := $(BUILD)/cloud-deb/.built

wheel: $(WHEEL) ## Build the wheel in .build/wheel

$(WHEEL): $(LOCKED) pyproject.toml setup.py $(SOURCES)
	@scripts/debian-packages.sh build
	@rm -rf $(@D) && mkdir -p $(@D)
	@$(BIN)/python -m pip wheel -q --no-deps --no-index --no-build-isolation -w $(@D) .
	@touch $@

# The libraries that the packages carry: those of the lock file, by their hashes.
FETCH = rm -rf $(@D) && mkdir -p $(@D) && $(BIN)/python -m pip download -qq \
  --disable-pip-version-check --only-binary :all: --require-hashes -d $(@D) -r

$(WHEELS)/.fetched: $(LOCKED) requirements-run.lock
	@$(FETCH) requirements-run.lock
	@touch $@

deb: $(DEB) cloud-deb ## Build the Debian packages in .build/deb, and the cloud's in .build/cloud-deb

repo: deb ## Add the packages to an apt repository in REPO=.build/repo, signed by KEY=NAME of your gpg
	@scripts/debian-packages.sh deb
	@scripts/make-repo.sh "$(or $(REPO),$(BUILD)/repo)" "$(KEY)" $(dir $(DEB))*.deb $(dir $(CLOUD_DEB))*.deb

PACKED := scripts/make-debs.sh README.md $(shell find debian docs scripts/docs -type f -not -path "*/__pycache__/*")
$(DEB): $(WHEEL) $(WHEELS)/.fetched $(PACKED)
	@scripts/debian-packages.sh deb
	@PIP="$(abspath $(BIN))/pip" scripts/make-debs.sh $(@D) debian $(WHEELS) $(WHEEL)
	@touch $@

# The cloud is a distribution of its own, and so it has a package of its own.
cloud-deb: $(CLOUD_DEB)

CLOUD_SOURCES := $(shell find cloud -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*')
$(CLOUD_WHEEL): $(LOCKED) $(CLOUD_SOURCES)
	@rm -rf $(@D) && mkdir -p $(@D)
	@$(BIN)/python -m pip wheel -q --no-deps --no-index --no-build-isolation -w $(@D) ./cloud
	@rm -rf cloud/build
	@touch $@

$(CLOUD_WHEELS)/.fetched: $(LOCKED) cloud/requirements.lock
	@$(FETCH) cloud/requirements.lock
	@touch $@

$(CLOUD_DEB): $(WHEEL) $(CLOUD_WHEEL) $(CLOUD_WHEELS)/.fetched $(PACKED)
	@scripts/debian-packages.sh deb
	@PIP="$(abspath $(BIN))/pip" scripts/make-debs.sh $(@D) cloud/debian $(CLOUD_WHEELS) \
	  $(WHEEL) $(CLOUD_WHEEL)
	@touch $@

debian-root: $(BUILD)/machines/.made ## Make a fresh Debian 12 system in .build/machines

$(BUILD)/machines/.made: scripts/make-debian-root.sh
	@scripts/debian-packages.sh real
	@scripts/make-debian-root.sh $(@D)/debian
	@touch $@

cloud-image: $(BUILD)/cloud-image/debian-12.qcow2 ## Make a cloud image of a small Debian 12 in .build/cloud-image

$(BUILD)/cloud-image/debian-12.qcow2: scripts/make-cloud-image.sh
	@scripts/debian-packages.sh real
	@scripts/make-cloud-image.sh $@

guest: $(INSTALLED) real-packages ## Build the small Linux guest's image in .build/guest
	@scripts/make-guest.sh $(BIN)/python $(GUEST)

# What a tour takes place in, and what it is called there.
TOURED := $(if $(CLOUD),$(CLOUD_DIR),$(RUN_DIR))
TOURED_IS := $(if $(CLOUD),cloud,cluster)

run: $(INSTALLED) ## Start a cluster and show the tour; CLOUD=1 takes two and volumes between them, SIM=1 simulated nodes (no root)
	@[ ! -e $(TOURED)/scratch.json ] && [ ! -e $(TOURED)/scratch-cloud.json ] || \
	  { echo "There is a $(TOURED_IS) in $(TOURED) already; to end it: make stop" >&2; exit 1; }
	@$(if $(SIM),:,scripts/can-run-real.sh)
	@$(if $(SIM),:,$(MAKE) guest)
	@mkdir -p $(BUILD)
	$(BIN)/moorage tour $(TOURED)$(if $(CLOUD), --cloud)$(if $(SIM), --sim)

stop: ## End what make run has started; nothing stays behind
	@if [ ! -d $(RUN_DIR) ] && [ ! -d $(CLOUD_DIR) ]; then \
	  echo "Nothing to stop: there is no cluster in $(RUN_DIR), and no cloud in $(CLOUD_DIR)"; \
	else [ -x $(BIN)/moorage ] || $(MAKE) -s all; \
	  for one in $(RUN_DIR) $(CLOUD_DIR); do [ ! -d $$one ] || $(BIN)/moorage down $$one; done; fi

histories: $(INSTALLED) ## Clients' histories are checked while the lead in etcd moves: SEED=1 CHANGES=60 CLIENTS=24 CALM=20
	MOORAGE_CHANGES=$(or $(CHANGES),60) MOORAGE_CLIENTS=$(or $(CLIENTS),24) MOORAGE_CALM=$(or $(CALM),20) \
	  MOORAGE_SEED=$(SEED) MOORAGE_KEPT=tests/histories/runs.jsonl $(BIN)/pytest -rP tests/real/test_histories.py

takeovers: $(INSTALLED) ## Masters over etcd die, stand still and are cut off, ROUNDS=30 times each: how long nobody leads
	$(BIN)/python benchmarks/takeovers.py --tries $(or $(ROUNDS),30)
	MOORAGE_ROUNDS=$(or $(ROUNDS),30) MOORAGE_SEED=$(SEED) $(BIN)/pytest -rP tests/real/test_etcd_takeover.py

bench: $(INSTALLED) ## Measure what commands cost at 100 to 10,000 instances, on 3 to 1,000 nodes
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/choosing.py
	$(BIN)/python benchmarks/one_object.py
	$(BIN)/python benchmarks/converting.py
	$(BIN)/python benchmarks/commits.py
	@$(MAKE) takeovers
	$(BIN)/python benchmarks/ganetis_file.py
	$(BIN)/python benchmarks/damaged.py
	$(BIN)/python tests/htools/bench.py
	$(BIN)/python benchmarks/starting.py
	$(BIN)/python benchmarks/doors.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/cloud.py

walks: $(INSTALLED) ## Count the modules and calls of a request, from the command to the script
	$(BIN)/python benchmarks/walks.py

parity: $(INSTALLED) real-packages ## Compare decisions with Ganeti's planner; SEED=1 CLUSTERS=1000
	$(BIN)/python tests/htools/parity/sweep.py --seed $(SEED) --clusters $(CLUSTERS) \
	  --keep $(BUILD)/parity $(if $(PROGRAMS),--programs $(PROGRAMS))

chaos: $(INSTALLED) $(if $(REAL),guest) $(if $(STORE),real-packages) ## Break clusters of processes under load for long; SEED=1 KILLS=1000 REAL=1 (real guests) STORE=etcd ACCOUNT=DIR
	$(BIN)/python tests/chaos/run.py $(if $(STORE),--store $(STORE)) --seed $(SEED) --kills $(KILLS) --account $(ACCOUNT) \
	  $(if $(REAL),--guest $(GUEST) --clients 4 --each 60,--clients 12) --keep $(CHAOS)

power-cuts: $(INSTALLED) guest ## Cut the power of an emulated node, and look at its disk; SEED=1 CUTS=30
	$(BIN)/python tests/chaos/power_cuts.py --seed $(SEED) --cuts $(CUTS) --account $(ACCOUNT) --keep

cloud-deaths: $(INSTALLED) ## Kill a cloud's processes while volumes come and go, on both databases; SEED=1 KILLS=1000
	MOORAGE_SEED=$(SEED) MOORAGE_CLOUD_KILLS=$(KILLS) $(BIN)/pytest -s tests/cloud/test_deaths.py

chaos-account: $(INSTALLED) ## Print the sum over all runs of chaos and power-cuts; ACCOUNT=DIR
	@$(BIN)/python tests/chaos/ledger.py $(ACCOUNT)

MUTATION := $(BUILD)/mutation
mutants: $(INSTALLED) $(MUTATION)/.installed ## Change the code a little, see if tests notice: MUTANTS='moorage.jobs.*' TESTS=tests/jobs
	$(MUTATION)/bin/python scripts/mutants.py --tests "$(TESTS)" '$(MUTANTS)'

$(MUTATION)/.installed: requirements-mutants.lock scripts/make-venv.sh
	@PYTHON="$(PYTHON)" scripts/make-venv.sh $(MUTATION) requirements-mutants.lock
	@touch $@

requirements: $(INSTALLED) ## A line a requirement: number, pass, fail or none, its tests
	@if [ $$(ls $(REPORTS)/{fast,slow,real}.json 2>/dev/null | wc -l) -lt 3 ]; then \
	  echo "No report of a full run yet: running make test first" >&2; \
	  $(MAKE) test >&2 || echo "make test failed; this is what it has shown:" >&2; fi
	@$(BIN)/python scripts/requirements.py docs/reference/requirements.md $(REPORTS)

lock: $(LOCKED) ## Renew requirements.lock (needs the package registry)
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade \
	  --generate-hashes --allow-unsafe --strip-extras --no-emit-options \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --extra dev --output-file requirements.lock pyproject.toml cloud/requirements.in
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
	  --generate-hashes --allow-unsafe --strip-extras --no-emit-options \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --constraint requirements.lock --extra dev --extra mutants \
	  --output-file requirements-mutants.lock pyproject.toml
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
	  --generate-hashes --allow-unsafe --strip-extras --no-emit-options \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --constraint requirements.lock --output-file requirements-run.lock pyproject.toml
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
	  --generate-hashes --allow-unsafe --strip-extras --no-emit-options \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --constraint requirements.lock --output-file cloud/requirements.lock \
	  pyproject.toml cloud/requirements.in

clean: stop ## Remove all that make has built
	rm -rf $(BUILD) $(VENV) mutants .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src cloud tests -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## Show this list
	@sed -nE 's/^([a-z-]+):.* ## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

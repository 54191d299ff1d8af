# `make run` starts the site, `make test` proves it; both from a bare checkout. `make help` lists the rest.

PYTHON ?= python3
PORT ?= 8000
BENCH_LIMIT ?= 500
BENCH_CHUNKS ?= 100000
BENCH_STREAMS ?= 200
TEST_PROCESSES ?= 4
SOAK_KILLS ?= 300
SOAK_ANSWERS ?= 2000
VENV := .venv
BIN := $(VENV)/bin
# Of the environment, or of .env, which the site reads itself.
LOCAL_MODEL ?= $(shell sed -n 's/^LOCAL_MODEL=//p' .env 2>/dev/null)
MODEL_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ragsite
export PORT
# Where it is set, every process of the site and of the tests compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run test suite test-connectors fetch-model test-model test-citus test-busy lint types unit format messages bench bench-ranking bench-answers bench-speed bench-stages bench-streams soak fuzz-api audit sbom clean

help:  ## list these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.dev  ## make the environment in .venv

run: $(VENV)/.site $(if $(LOCAL_MODEL),$(VENV)/.local-model)  ## start the site: database, web, worker, scheduler (PORT=8000)
	@exec $(BIN)/python manage.py serve --port $(PORT)

test: $(VENV)/.dev lint  ## lint, types, import rules, migrations, and the whole test suite
	@$(MAKE) --no-print-directory -j2 types suite

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

test-citus: $(VENV)/.dev  ## the integration tests on a Citus cluster of three servers (PGDIR=a PostgreSQL with Citus and pgvector)
	@test -n "$(PGDIR)" || { echo 'Name a PostgreSQL with Citus and pgvector: make test-citus PGDIR=/usr/lib/postgresql/18'; exit 2; }
	$(BIN)/python -m tests.support.citus_cluster $(PGDIR) $(BIN)/python -m pytest tests/integration --ignore tests/integration/test_citus.py -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder
	@# It stops a node: alone, on a cluster of its own.
	$(BIN)/python -m tests.support.citus_cluster $(PGDIR) $(BIN)/python -m pytest tests/integration/test_citus.py

test-busy: $(VENV)/.dev  ## the test suite on a busy machine: four loops beside it
	@trap 'kill $$loops' EXIT; for each in 1 2 3 4; do (while :; do :; done) & loops="$$loops $$!"; done; $(MAKE) test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/lint-imports
	$(BIN)/mypy

fetch-model: $(VENV)/.dev $(VENV)/.local-model
	@$(BIN)/python -m tests.support.local_model_file "$(MODEL_CACHE)"

test-model: fetch-model  ## end-to-end tests on a real language model of 470 MB, fetched once (MODEL_CACHE=folder)
	TEST_MODEL_CACHE="$(MODEL_CACHE)" $(BIN)/python -m pytest tests/model

test-connectors: $(VENV)/.dev  ## sources by connectors of others, which are installed from the package index (700 MB)
	TEST_CONNECTORS=1 $(BIN)/python -m pytest tests/integration/sources/test_real_connectors.py

unit: $(VENV)/.dev  ## the tests that need no database, in two minutes
	$(BIN)/python -m pytest tests/unit -q

format: $(VENV)/.dev  ## rewrite the code in the project's layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-ranking bench-answers bench-speed  ## rebuild the tables of docs/ (BENCH_SETS="dir ..." ANSWER_SETS="dir ..." OFF_TOPIC_SETS="dir ..." GRADED_SETS=file)

bench-ranking: $(VENV)/.site
	@test -n "$(BENCH_SETS)" || { echo 'Name folders in BEIR form: make bench BENCH_SETS="sets/nfcorpus sets/scifact"'; exit 2; }
	$(BIN)/python manage.py evaluate_retrieval $(BENCH_SETS) --limit $(BENCH_LIMIT) --write docs/quality.md

bench-answers: $(VENV)/.site
	$(BIN)/python manage.py evaluate_answers $(ANSWER_SETS) $(addprefix --off-topic ,$(OFF_TOPIC_SETS)) --limit $(BENCH_LIMIT) --write docs/quality.md
	@test -z "$(GRADED_SETS)" || $(BIN)/python manage.py grade_answers $(GRADED_SETS) --write docs/quality.md

bench-stages: $(VENV)/.site
	$(BIN)/python manage.py benchmark_answers --write docs/performance.md

bench-streams: $(VENV)/.site
	$(BIN)/python manage.py benchmark_streams --streams $(BENCH_STREAMS) --write docs/performance.md
	$(BIN)/python manage.py benchmark_streams --streams $(BENCH_STREAMS) --quoted --write docs/performance.md

bench-speed: $(VENV)/.site
	$(BIN)/python manage.py benchmark_search --chunks $(BENCH_CHUNKS) --write docs/performance.md

soak: $(VENV)/.site  ## wear the site out: kill -9, thousands of answers in a row, a zoo of hostile files (about two hours)
	$(BIN)/python -m bench.reliability.kills --kills $(SOAK_KILLS)
	$(BIN)/python -m bench.reliability.endurance --answers $(SOAK_ANSWERS)
	$(BIN)/python -m bench.reliability.zoo

fuzz-api: $(VENV)/.site  ## hold the running API against its schema (schemathesis, in an environment of its own)
	@test -x $(VENV)-fuzz/bin/schemathesis || { $(PYTHON) -m venv $(VENV)-fuzz && $(VENV)-fuzz/bin/pip install --quiet schemathesis==4.32.5; }
	$(BIN)/python -m bench.reliability.fuzz_api --schemathesis $(VENV)-fuzz/bin/schemathesis

audit: sbom  ## write the bill of materials (sbom.cdx.json), and look for known weaknesses (needs the internet)
	$(VENV)-audit/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off \
		-r constraints.txt -r requirements-model.txt -r requirements-local-model.txt -r requirements-saml.txt -r requirements-slack.txt \
		-r requirements-audit.txt

sbom: $(VENV)/.site $(VENV)-audit/.made
	$(VENV)-audit/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file sbom.cdx.json $(BIN)/python

messages: $(VENV)/.dev  ## bring the translators' catalogues up to date
	RAGSITE_DOTENV=false DATA_DIR=$${DATA_DIR:-$$(mktemp -d)} $(BIN)/python -m tests.support.catalogue

clean:  ## remove the environment (documents in var/ stay)
	rm -rf $(VENV)

$(VENV)/.site: requirements.txt requirements-model.txt constraints.txt
	@./.ci/environment $(PYTHON) $(VENV) requirements.txt
	@touch $@

$(VENV)/.local-model: $(VENV)/.site requirements-local-model.txt
	@./.ci/environment $(PYTHON) $(VENV) requirements-local-model.txt
	@touch $@

$(VENV)-audit/.made: requirements-audit.txt
	@$(PYTHON) -m venv --clear $(VENV)-audit
	@$(VENV)-audit/bin/pip install --quiet --disable-pip-version-check -r requirements-audit.txt
	@touch $@

# It holds what the site runs on, too.
$(VENV)/.dev: requirements-dev.txt requirements-slack.txt requirements.txt requirements-model.txt constraints.txt
	@./.ci/environment $(PYTHON) $(VENV) requirements-dev.txt
	@touch $(VENV)/.site $@

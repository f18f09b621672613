# What a contributor types, and what continuous integration runs. Each target makes the virtual environment it needs.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
VENV := .venv
RUN := $(VENV)/bin
CONSTRAINTS ?=  # a file of versions for pip, such as .ci/oldest.txt
ARGS ?=  # more arguments for pytest
ALL ?=  # make test ALL=1: all random examples, not some of them

# make fuzz: how many new examples each test tries, from which seed, in which files (the others have no random examples;
# Spark's start a JVM and take minutes: name them to include them).
EXAMPLES ?= 300
ifndef SEED
SEED := $(strip $(shell od -An -N4 -tu4 /dev/urandom))
endif
FUZZED ?= $(shell grep -rlE 'hypothesis|HALFJOIN_FUZZ' tests --include='test_*.py' | grep -v spark | sort)

.PHONY: help test fuzz bench tpch graphs docs site demo lint examples clean

help:  ## this list
	@awk -F ':.*##' '/^[a-z]+:.*##/ { printf "make %-9s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# A worker that dies ends the run: xdist 3.8 waits for ever where it starts another one for its group.
test: $(VENV)/.test  ## the everyday suite; ALL=1 for all of its random examples, which take longer
	$(if $(strip $(ALL)),HALFJOIN_ONE_IN=1) $(RUN)/python -m pytest -n auto --dist loadgroup --max-worker-restart 0 $(ARGS)

fuzz: $(VENV)/.test $(VENV)/.test-postgres  ## the laws on new examples; EXAMPLES=300 a test, SEED=1 the same ones again
	@echo "seed $(SEED), $(EXAMPLES) examples a test"
	@HALFJOIN_FUZZ=$(EXAMPLES) HALFJOIN_FUZZ_SQL=$(EXAMPLES) HALFJOIN_SEED=$(SEED) $(RUN)/python -m pytest -n auto \
		--dist loadgroup --hypothesis-seed=$(SEED) $(ARGS) $(FUZZED) || { \
		echo "to see it again, in one process:"; \
		echo "make fuzz SEED=$(SEED) EXAMPLES=$(EXAMPLES) ARGS='-n 0 -x' FUZZED=path::test"; exit 1; }

bench: $(VENV)/.demo $(VENV)/.pathway  ## the benchmarks on little data, each beside what it is compared with; SF=1 for more
	$(if $(shell ls $(VENV)/pathway/bin/pathway 2>/dev/null),HALFJOIN_PATHWAY=$(VENV)/pathway/bin/python )\
		$(RUN)/python -m tests.benchmarks.peers --sf $(or $(SF),0.01)
	$(RUN)/python -m tests.benchmarks.q3 --sf $(or $(SF),0.01)
	$(RUN)/python -m tests.benchmarks.q3 --sf $(or $(SF),0.01) --durable
	$(RUN)/python -m tests.benchmarks.budget --sf $(or $(SF),0.01)
	$(RUN)/python -m tests.benchmarks.memory --sf $(or $(SF),0.01)
	$(RUN)/python -m tests.benchmarks.history --rows 5000 --batch 1000
	$(RUN)/python -m tests.benchmarks.bulk --sf $(or $(SF),0.01) --rows 5000 --rounds 2
	$(RUN)/python -m tests.benchmarks.groups --rows 100000 --sf $(or $(SF),0.01)
	$(RUN)/python -m tests.benchmarks.triangles --edges 5000 --hubs 4 --largest 100

tpch: $(VENV)/.demo  ## TPC-H's 22 queries as views, each beside recomputing it; SF=1 for more
	$(RUN)/python -m tests.benchmarks.tpch --sf $(or $(SF),0.01)

graphs: $(VENV)/.graphs  ## recursive views over graphs, beside DuckDB, SciPy and Rust; EDGES=100000 for a small one only
	$(RUN)/python -m tests.benchmarks.graphs $(if $(EDGES),--edges $(EDGES) --no-roads)

docs: $(VENV)/.test  ## writes what pages and golden plans show anew, and checks links; read the difference
	HALFJOIN_UPDATE=1 $(RUN)/python -m pytest tests/test_readme.py tests/test_habits.py tests/planner/test_plan_golden.py
	@git --no-pager diff --stat

site: $(VENV)/.site  ## the manual as a web site, in site/
	$(RUN)/python -m zensical build --clean --strict

demo: $(VENV)/.demo  ## TPC-H, maintained; SF=1 make demo for more
	$(RUN)/python -m examples.demo

lint: $(VENV)/.lint  ## ruff and mypy --strict
	$(RUN)/ruff check .
	$(RUN)/mypy

examples: $(VENV)/.test  ## runs each example, which ends by checking itself
	$(RUN)/python -m pytest -s tests/test_examples.py

clean:  ## removes the environment and what was built
	rm -rf $(VENV) build dist site demo.html demo-warehouse

# One stamp for each of the extras; the environment itself is made by the first. (setuptools warns of every editable
# installation that has a folder of the package's name, which is meant here.)
$(VENV)/.%: pyproject.toml setup.py $(wildcard engine/kernels/*.[ch]) | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(RUN)/pip install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) --editable '.[$*]'
	@touch $@

# Pathway needs an older pyarrow than halfjoin, so it has an environment of its own; without it its lines are missing.
$(VENV)/.pathway: | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/pathway
	-$(VENV)/pathway/bin/pip install --quiet --only-binary pathway 'pathway>=0.30' tpchgen-cli
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "halfjoin needs Python 3.11 or later; say where: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet --upgrade pip

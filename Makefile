# The two commands of the README, and what continuous integration runs. Each makes the virtual environment it needs.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
VENV := .venv
RUN := $(VENV)/bin

.PHONY: test demo lint examples clean

test: $(VENV)/.test  ## the whole everyday suite
	$(RUN)/python -m pytest -n auto --dist loadgroup

demo: $(VENV)/.demo  ## TPC-H, maintained; SF=1 make demo for more
	$(RUN)/python -m examples.demo

lint: $(VENV)/.lint
	$(RUN)/ruff check .
	$(RUN)/mypy

examples: $(VENV)/.test
	@for example in quickstart shared_arrangements temporal_filter table_functions debezium as_of_and_subscribe \
		views_over_views delta_sink; do echo "== $$example" && $(RUN)/python examples/$$example.py || exit 1; done

# One stamp for each of the extras; the environment itself is made by the first. (setuptools warns of every editable
# installation that has a folder of the package's name, which is meant here.)
$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(RUN)/pip install --quiet --editable '.[$*]'
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "halfjoin needs Python 3.11 or later; say where: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet --upgrade pip

clean:
	rm -rf $(VENV) build dist demo.html demo-warehouse

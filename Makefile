# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
QUESTION ?= What does the article say the lighthouse keeper did every evening?

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: setup demo serve site test lint clean

setup: .venv/.installed
	@$(BIN)/pyweb setup

demo: setup
	@$(BIN)/pyweb ask --page site/demo/article.html "$(QUESTION)"

serve: setup
	@$(BIN)/pyweb serve

site: setup
	@$(BIN)/pyweb site --out dist/site

test: setup .venv/.tested node_modules/.installed lint
	@# 75: the software adapter's process crashed or stopped answering, and took the tests behind it along.
	$(BIN)/python -m pytest $(ARGS) || { [ $$? = 75 ] && $(BIN)/python -m pytest --last-failed $(ARGS); }

lint: .venv/.tested
	$(BIN)/ruff check .
	$(BIN)/lint-imports

clean:
	rm -rf .venv node_modules dist build .pytest_cache .hypothesis .ruff_cache .import_linter_cache

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable .
	@touch $@

.venv/.tested: pyproject.toml | .venv/.installed
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[test]'
	@touch $@

node_modules/.installed: package.json | .venv/.installed
	@$(BIN)/pyweb setup --tests
	npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

# Needs Python >= 3.11 (with venv) and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PICTURE ?= examples/picture.jpg

.PHONY: help demo test check serve warm lock clean

help:
	@echo "make demo [PICTURE=photo.jpg]  set up, start the service, post a picture, print its patches"
	@echo "make test                      set up and run all tests"
	@echo "make check                     format, lint, types, import arrows, docs and unit tests"
	@echo "make serve                     run the service on PATCHMILL_HOST:PATCHMILL_PORT (127.0.0.1:8080)"
	@echo "make warm                      compile the kernels into their cache"
	@echo "make lock                      pin the requirements anew"
	@echo "make clean                     remove what this file made"

demo: $(VENV)/service
	@$(BIN)/python scripts/demo.py $(PICTURE)

test: $(VENV)/dev
	$(BIN)/python -m pytest

check: $(VENV)/dev
	scripts/check

serve: $(VENV)/service
	$(BIN)/patchmill serve

warm: $(VENV)/service
	$(BIN)/patchmill warm

$(VENV)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and \
	    f"patchmill needs Python 3.11 or later, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=")'
	@echo "==> making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/service: $(VENV)/python requirements/build.txt requirements/service.txt pyproject.toml
	@echo "==> installing the service's packages into $(VENV) (once, about a minute)"
	@$(BIN)/pip install --disable-pip-version-check --require-hashes -r requirements/build.txt -r requirements/service.txt
	@$(BIN)/pip install --disable-pip-version-check --no-deps --no-build-isolation --quiet --editable .
	@touch $@

$(VENV)/dev: $(VENV)/service requirements/dev.txt
	@echo "==> installing the packages for tests and checks"
	@$(BIN)/pip install --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

COMPILE := $(VENV)/lock/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
    --no-header --no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock: $(VENV)/python
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet pip-tools==7.6.2
	$(COMPILE) --output-file requirements/service.txt pyproject.toml
	$(COMPILE) --output-file requirements/build.txt requirements/build.in
	$(COMPILE) --constraint requirements/service.txt --output-file requirements/dev.txt requirements/dev.in

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find service kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +

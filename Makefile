# Needs Python >= 3.11 (with venv) and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PICTURE ?= examples/picture.jpg
SECONDS ?= 180
# Whichever is there and answers; ENGINE=podman overrules it.
ENGINE ?= $(shell docker info >/dev/null 2>&1 && echo docker || echo podman)
IMAGE ?= patchmill
SHAPE ?= steady
RATE ?= 16

.PHONY: help demo test test-torch test-load verify bench bench-torch overload soak corpus loadtest hostile fuzz check serve warm \
    image test-image lock clean

help:
	@echo "make demo [PICTURE=photo.jpg]  set up, start the service, post a picture, print its patches"
	@echo "make test                      set up and run all tests"
	@echo "make test-torch                run the client's tests with torch, and the float resize against torch's"
	@echo "make test-load                 run the load tests' own tests with locust as well"
	@echo "make verify                    compare the kernels with Pillow in 20,000 random cases"
	@echo "make bench                     measure against peers; tables, pictures and JSON"
	@echo "make bench-torch               measure the pixel shuffle on CPU and, where there is one, GPU"
	@echo "make overload                  ten times the sustainable load for a minute"
	@echo "make soak [SECONDS=1800]       mixed load with hostile files and leaving clients: memory, descriptors"
	@echo "make loadtest [SHAPE=ramp] [SECONDS=60] [RATE=16]"
	@echo "                               load a service of its own with locust: verdict, charts; SHAPE=headline too"
	@echo "make corpus                    the pictures that load tests send, into loadtest/.corpus"
	@echo "make hostile                   hostile files by the clock, and 10,000 mutated ones"
	@echo "make fuzz [SECONDS=60]         coverage-guided fuzz of all parsers"
	@echo "make check                     format, lint, types, import arrows, known vulnerabilities, docs, unit tests"
	@echo "make serve                     run the service on PATCHMILL_HOST:PATCHMILL_PORT (127.0.0.1:8080)"
	@echo "make warm                      compile the kernels into their cache"
	@echo "make image [ENGINE=podman]     build the container image $(IMAGE), by docker or podman"
	@echo "make test-image                build it, start it read-only as another user, and ask it"
	@echo "make lock                      pin the requirements anew"
	@echo "make clean                     remove what this file made"

demo: $(VENV)/service
	@$(BIN)/python scripts/demo.py "$(PICTURE)"

test: $(VENV)/dev
	$(BIN)/python -m pytest
	cd client && ../$(BIN)/python -m pytest
	cd examples/vllm_frontend && ../../$(BIN)/python -m pytest

test-torch: $(VENV)/torch
	cd client && ../$(VENV)/torch/bin/python -m pytest tests/test_tensors.py tests/test_batch.py \
	    tests/test_pixel_shuffle.py tests/test_merge_order.py tests/test_orders.py tests/test_service.py
	$(VENV)/torch/bin/python -m pytest tests/kernels/test_floats_torch.py

verify: $(VENV)/dev
	$(BIN)/python -m tests.kernels.verify --cases 20000 --guarded
	$(BIN)/python -m tests.kernels.verify --cases 20000 --threads 16

bench: $(VENV)/bench
	$(BIN)/python -m benchmarks

bench-torch: $(VENV)/torch
	PYTHONPATH=client $(VENV)/torch/bin/python -m benchmarks.shuffle

overload: $(VENV)/bench
	$(BIN)/python -m benchmarks.overload

soak: $(VENV)/bench
	$(BIN)/python -m benchmarks.soak --seconds $(SECONDS)

corpus: $(VENV)/service
	PYTHONPATH=loadtest $(BIN)/python -m traffic.making

# A shape has a length of its own, unless SECONDS is given.
loadtest: $(VENV)/load
	PYTHONPATH=loadtest $(BIN)/python -m traffic --shape $(SHAPE) --rate $(RATE) \
	    --seconds $(if $(filter file,$(origin SECONDS)),0,$(SECONDS))

test-load: $(VENV)/load $(VENV)/dev
	$(BIN)/python -m pytest tests/loadtest

hostile: $(VENV)/dev
	$(BIN)/python -m tests.hostile.verify --mutations 10000

fuzz: $(VENV)/dev
	$(BIN)/python -m tests.hostile.fuzz --seconds $(SECONDS)

check: $(VENV)/dev
	scripts/check

serve: $(VENV)/service
	$(BIN)/patchmill serve

warm: $(VENV)/service
	$(BIN)/patchmill warm

# BUILDAH_FORMAT is podman's: without it there would be no HEALTHCHECK.
image:
	BUILDAH_FORMAT=docker $(ENGINE) build --platform linux/amd64 --tag $(IMAGE) \
	    --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) .

test-image: $(VENV)/dev image
	TEST_IMAGE=$(IMAGE) ENGINE="$(ENGINE)" $(BIN)/python -m pytest tests/deploy/test_image.py

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

$(VENV)/bench: $(VENV)/service requirements/bench.txt
	@echo "==> installing the packages for benchmarks"
	@$(BIN)/pip install --disable-pip-version-check --require-hashes -r requirements/bench.txt
	@touch $@

$(VENV)/load: $(VENV)/service requirements/load.txt
	@echo "==> installing the packages for load tests"
	@$(BIN)/pip install --disable-pip-version-check --require-hashes -r requirements/load.txt
	@touch $@

# An environment of its own: the other tests prove that service and client need no torch.
$(VENV)/torch: $(VENV)/dev client/pyproject.toml
	@echo "==> installing torch for the client's tests (CPU build where pip finds one)"
	@$(PYTHON) -m venv $(VENV)/torch
	@$(VENV)/torch/bin/pip install --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(VENV)/torch/bin/pip install --disable-pip-version-check torch==2.13.0 msgpack==1.2.4 numpy==2.4.6 \
	    pillow==13.0.0 numba==0.68.1
	@touch $@

COMPILE := $(VENV)/lock/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
    --no-header --no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock: $(VENV)/python
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet pip-tools==7.6.2
	$(COMPILE) --output-file requirements/service.txt pyproject.toml
	$(COMPILE) --output-file requirements/build.txt requirements/build.in
	$(COMPILE) --constraint requirements/service.txt --output-file requirements/dev.txt requirements/dev.in
	$(COMPILE) --constraint requirements/service.txt --output-file requirements/bench.txt requirements/bench.in
	$(COMPILE) --constraint requirements/service.txt --constraint requirements/dev.txt --output-file requirements/load.txt requirements/load.in

clean:
	rm -rf $(VENV) build loadtest/.corpus loadtest/results *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find service kernels tests loadtest -name __pycache__ -type d -prune -exec rm -rf {} +

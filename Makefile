# Everything a newcomer or CI runs. `make help` lists it; .venv is made on first use.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
# Compiler jobs of the native build.
JOBS ?= 2
# Worker processes of the tests: more than cores, since many tests wait for processes of their own.
WORKERS ?= 3

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
BUILD := build/editable
# Stamps: the third-party packages of requirements.lock, and the project itself.
DEPS := $(VENV)/.deps
INSTALL := $(VENV)/.install

# Modules are compiled once, not by each of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-arm test-arm-vectors test-avx512 bench bench-dispute lint format types check-cuda check-sanitizers exhaustive vectors generate check-generated packages install native build-arm build-sanitizers clean

help:  ## List the targets.
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

# ---- what a newcomer runs -------------------------------------------------------------------

demo: native  ## Train a GPT on a local network of nodes, catch a lie, print the ruling.
	$(BIN)/identic demo

test: native  ## Run the tests (PYTEST_ARGS adds to the command line).
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

test-all: native  ## Run every test at its full length, those that take long too.
	IDENTIC_TESTS=all $(BIN)/pytest --numprocesses $(WORKERS) --dist loadgroup -m '' $(PYTEST_ARGS)

test-arm: $(INSTALL)  ## Run the vector suite on AArch64 code, cross-compiled, under qemu.
	$(PY) -m tests.kernels.arm $(PYTEST_ARGS)

test-arm-vectors: $(INSTALL)  ## Of these the golden vectors alone.
	$(PY) -m tests.kernels.arm vectors $(PYTEST_ARGS)

test-avx512: native  ## Run the golden vectors by AVX-512 instructions on a simulated processor (Bochs).
	$(PY) -m tests.kernels.avx512 $(PYTEST_ARGS)

build-arm:  ## Compile what test-arm runs; it needs no .venv.
	$(PYTHON) -m tests.kernels.arm build

bench: native  ## Time operators and steps against torch; writes out/bench.json.
	$(BIN)/identic bench $(BENCH_ARGS)

bench-dispute: native  ## Play disputes about lies of every kind; writes out/bench-dispute.json.
	$(PY) -m tests.bench.disputes

# ---- checks ---------------------------------------------------------------------------------

lint: $(INSTALL)  ## Style of the Python code.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALL)  ## Rewrite the Python code to the style that lint wants.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(INSTALL)  ## Check types, strictly.
	$(BIN)/mypy

check-sanitizers: $(INSTALL)  ## Run hostile programs on kernels that stop at every wrong access.
	$(PY) -m tests.kernels.sanitizers --numprocesses $(JOBS) $(PYTEST_ARGS)

build-sanitizers: $(INSTALL)  ## Compile what check-sanitizers runs.
	$(PY) -m tests.kernels.sanitizers build

check-cuda: native  ## Compile every CUDA kernel by NVRTC, and run it on the CPU; no GPU (`make test` does too).
	$(BIN)/pytest --numprocesses $(JOBS) --dist loadgroup tests/cuda $(PYTEST_ARGS)

exhaustive: native  ## Check all 2^32 operands of the rounded functions; goes on where it was stopped.
	$(PY) -m tests.kernels.native.exhaustive $(EXHAUSTIVE_ARGS)

vectors: native  ## Write the golden vectors, and their digest beside the number of the kernel set.
	$(PY) -m tests.vectors.generate

generate: $(INSTALL)  ## Make the protobuf code under node/rpc/ again from proto/.
	$(PY) -m identic.node.rpc.generate

check-generated: $(INSTALL)  ## Fail when the committed protobuf code differs from proto/.
	$(PY) -m identic.node.rpc.generate --check

# ---- the environment ------------------------------------------------------------------------

packages: $(DEPS)  ## Make .venv and install the packages that the project needs.

install: $(INSTALL)  ## Make .venv and install the package, editable.

$(DEPS): requirements.lock
	rm -rf $(BUILD)
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --no-compile --requirement requirements.lock
	touch $@

# Python code is read in place; new packages, the metadata and the build rules ask for a new install.
PACKAGES := $(wildcard */__init__.py */*/__init__.py */*/*/__init__.py)
$(INSTALL): $(DEPS) pyproject.toml CMakeLists.txt $(PACKAGES)
	$(PY) -m pip install --quiet --no-deps --no-build-isolation -C build-dir=$(BUILD) --editable .
	touch $@

# Compiles what changed and swaps the module in place, without a moment in which it is missing.
native: $(INSTALL)  ## Compile the changed C++ files into the installed package.
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(BUILD) -- -j$(JOBS) | tail -n 40
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake --install $(BUILD) \
	    --prefix "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" >/dev/null

clean:  ## Remove what the targets made, .venv included.
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

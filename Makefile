# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/installed

LOOK = comparisons/demo/report.html

ROOM ?= decode

.PHONY: demo look pictures test test-scale thorough faults soak bench reproduce suite mutants lint docs setup lock wheel clean

setup: $(STAMP)

PIP = $(BIN)/pip install --quiet --disable-pip-version-check

# everything by version and hash (requirements.lock), torch by its version: any other range pulls gigabytes of GPU packages
$(STAMP): pyproject.toml constraints.txt requirements.lock setup.py $(wildcard native/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt torch==2.13.0
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

# new versions for development and CI; needs uv
lock:
	uv pip compile pyproject.toml requirements.in --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --quiet --upgrade -o requirements.lock

demo: $(STAMP)
	$(BIN)/unrolled demo

# the demo's report in a real browser, at phone and desktop width; needs chromium
look: $(STAMP)
	$(BIN)/python -m benchmarks.look $(LOOK)

# the two pictures of the README; needs chromium
pictures: $(STAMP)
	rm -rf comparisons/demo
	$(MAKE) demo look
	$(BIN)/python docs/picture.py

# tests write and sync thousands of small files: in memory where there is such a file system
IN_MEMORY = $(if $(wildcard /dev/shm/.),PYTEST_DEBUG_TEMPROOT=/dev/shm)

# processes that tests start read what others have compiled
COMPILED = PYTHONDONTWRITEBYTECODE=

# three at a time: tests wait for processes, files and servers, and with two a fifth of two cores is idle
test: $(STAMP)
	OMP_NUM_THREADS=1 $(COMPILED) $(IN_MEMORY) $(BIN)/python -m pytest -n 3 --dist worksteal

# many runs on Ray clusters, searches for settings, runs on many processes: the extras are installed first, outside of the lock
test-scale: $(STAMP)
	$(PIP) -c constraints.txt "ray>=2.50,<3" "optuna>=4,<6" "lightning-fabric>=2.6.4,<2.7"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/comparison/test_joining.py tests/comparison/test_ray.py tests/tuning \
		tests/training/test_processes.py tests/training/test_processes_started.py \
		-m "long or not long"

# all tests, also those that are too long for `make test`; half an hour
thorough: $(STAMP)
	OMP_NUM_THREADS=1 $(COMPILED) $(IN_MEMORY) $(BIN)/python -m pytest -n 2 --dist worksteal -m "long or not long" \
		--ignore tests/faults

# every trial of kills, full disks, hostile directories, bad files and exports; `make test` runs a part of them
faults: $(STAMP)
	OMP_NUM_THREADS=1 $(COMPILED) $(IN_MEMORY) $(BIN)/python -m pytest -n 2 --dist worksteal tests/faults tests/exports tests/runs/test_checkpoint.py \
		tests/training/test_resume.py tests/comparison/test_compare.py -m "long or not long"

# a server under load with faults for half an hour, and every trial of tests/serve
soak: $(STAMP)
	OMP_NUM_THREADS=1 $(COMPILED) $(BIN)/python -m pytest tests/serve -m long --timeout 3600
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.serve.traffic --minutes 30 --requests 10000 --connections 32

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# each line can be run alone; results are kept in benchmarks/results
bench: $(STAMP)
	$(BIN)/python -m benchmarks.recurrent --threads 1 2
	$(BIN)/python -m benchmarks.streaming --threads 1
	$(BIN)/python -m benchmarks.attention
	$(BIN)/python -m benchmarks.beam
	$(BIN)/python -m benchmarks.serving
	$(BIN)/python -m benchmarks.autoregression
	test -z "$$PEER_PYTHON" || $(BIN)/python -m benchmarks.forecast_speed
	test -z "$$PEER_PYTHON" || $(BIN)/python -m benchmarks.word_vectors
	test -z "$$UNROLLED_DATA" || $(BIN)/python -m benchmarks.forecast_large
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.large_tables
	test -z "$$SCALE_PYTHON" || $$SCALE_PYTHON -m benchmarks.scale
	test -z "$$SCALE_PYTHON" || $$SCALE_PYTHON -m benchmarks.processes
	$(BIN)/python -m benchmarks.recall speed

# needs UNROLLED_DATA; each line, and each piece of the first, can be run alone
reproduce: $(STAMP)
	$(BIN)/python -m benchmarks.reproduce
	for model in tcn lstm gru; do $(BIN)/python -m benchmarks.copy_memory $$model || exit 1; done
	for set in jsb nottingham; do for model in tcn lstm gru; do \
	  $(BIN)/python -m benchmarks.polymusic $$set $$model || exit 1; done; done
	$(BIN)/python -m benchmarks.answers
	$(BIN)/python -m benchmarks.writing
	$(BIN)/python -m benchmarks.pen
	$(BIN)/python -m benchmarks.recall classical once polynomial exponential continuous
	$(BIN)/python -m benchmarks.bags
	$(BIN)/python -m benchmarks.forecast
	$(BIN)/python -m benchmarks.forecast_small
	$(BIN)/python -m benchmarks.pretraining
	$(BIN)/python -m benchmarks.tables

# what a newcomer gets on each data set; needs UNROLLED_DATA; hours; each piece can be run alone, and those with a result are skipped
suite: $(STAMP)
	$(BIN)/python -m benchmarks.suite
	$(BIN)/python -m benchmarks.tables

# small faults in a room, and whether the tests notice them; `make mutants ROOM=layers`, see docs/mutants.md
mutants: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(ROOM)

docs: $(STAMP)
	$(BIN)/python -m benchmarks.tables

# for this platform and every Python, with the native libraries in it
wheel: $(STAMP)
	rm -rf dist
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m tests.wheel dist/*.whl

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .mutants

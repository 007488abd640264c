# Thin over packaging/bootstrap.py, which also runs without make (Windows: py packaging\bootstrap.py run).
# ARGS goes on to the program or to pytest: make run ARGS="model.gguf", make test ARGS="-k sampler".

ARGS ?=

# The first Python that starts and is new enough: a name on the PATH may be an empty shim.
ifndef PYTHON
PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo "$$name"; break; fi; done)
endif
ifeq ($(strip $(PYTHON)),)
BOOTSTRAP = @echo "Slipstream needs Python 3.11 or newer, and none was found. Debian 12: apt-get install python3 python3-venv" >&2; exit 2;
else
BOOTSTRAP = @$(PYTHON) packaging/bootstrap.py
endif

.PHONY: help run test test-slow lint peers server lock clean

help:
	@echo "make run        set up what is missing and start Slipstream (ARGS=...)"
	@echo "make test       set up for tests, then checks and tests (ARGS=... for pytest)"
	@echo "make test-slow  the same with the slow tests alone"
	@echo "make lint       the checks alone"
	@echo "make peers      install what some slow tests and benchmarks compare with"
	@echo "make server     build llama.cpp's own server, which a benchmark compares with"
	@echo "make lock       write packaging/requirements/*.lock anew (ARGS=--upgrade)"
	@echo "make clean      remove what tools left; keeps .venv, .cache and the models"

run:
	$(BOOTSTRAP) run $(ARGS)

test:
	$(BOOTSTRAP) test $(ARGS)

test-slow:
	$(BOOTSTRAP) test-slow $(ARGS)

lint:
	$(BOOTSTRAP) lint

peers:
	$(BOOTSTRAP) setup-peers

server:
	$(BOOTSTRAP) setup-server

lock:
	$(BOOTSTRAP) lock $(ARGS)

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find desktop tests packaging -name __pycache__ -type d -prune -exec rm -rf {} +

# From a fresh clone: `make demo` and `make test` install what they need into .venv.

PYTHON ?= python3
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11  # tried in this order
VENV := .venv
RUN := $(VENV)/bin/python
OUT ?= demo
comma := ,

pip_advice := check the network or name a mirror in PIP_INDEX_URL ('make clean' removes it)
python_advice := install one or name it: make PYTHON=/path/to/python3.11

# $(call fail,message): print the message and stop
fail = { echo "make: $(1)." >&2; exit 1; }

# $(call step,name,command,advice): run a named step; print the advice if it fails
define step
	@echo "== $(1)"
	@$(2) || $(call fail,$(1) failed; $(3))
endef

.PHONY: help demo explore gallery docs check test slow bench clean lint browser typescript
.NOTPARALLEL:  # two pips in one environment would break it

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

demo: $(VENV)/.pictures  ## train a translator, evaluate it and show its attention
	@$(RUN) -m regard demo --out "$(OUT)"

explore: $(VENV)/.explorer  ## translate and look at attention in a browser
	@$(RUN) -m regard explore --open

gallery: $(VENV)/.gallery  ## draw every figure of the chapter, as an offline site
	@$(RUN) -m regard gallery

docs: $(VENV)/.docs  ## build the documentation as an offline site, in build/docs
	@$(RUN) -m sphinx -q -W --keep-going -d build/doctrees docs build/docs
	@echo "wrote build/docs/index.html"

# on hosts that report AMX but forbid it, bfloat16 products crash without this
check test slow: export ONEDNN_MAX_CPU_ISA := AVX512_CORE_BF16

# pytest caches the tests that it rewrites, and jaxtyping the modules, as bytecode: half of the start
check test slow: export PYTHONDONTWRITEBYTECODE :=

PYTEST := $(RUN) -m pytest -n 2 -q --durations=25
# shapes and types of every call are checked while the tests run, which doubles their time
TYPECHECK := --jaxtyping-packages=regard,beartype.beartype

MARKED := browser or compile or docs or server or train or slow

check: $(VENV)/.dev lint  ## lint, types and the quick tests
	$(call step,tests,$(PYTEST) --dist loadfile -m "not ($(MARKED))" tests,see above)

test: $(VENV)/.dev browser typescript lint  ## lint, types and every test but the slow ones
	@command -v $(CXX) >/dev/null \
		|| $(call fail,no C++ compiler: torch.compile needs $(CXX). Install g++ or set CXX)
	$(call step,tests,$(PYTEST) $(TYPECHECK) -m "not slow",see above)

lint: $(VENV)/.dev
	$(call step,format,$(RUN) -m ruff format --check .,to fix it: $(RUN) -m ruff format .)
	$(call step,lint,$(RUN) -m ruff check .,see above)
	$(call step,types,$(RUN) -m mypy,see above)

slow: $(VENV)/.dev browser  ## run the tests that take minutes
	$(call step,slow tests,$(RUN) -m pytest $(TYPECHECK) -q -m slow --durations=25,see above)

has_browser := { command -v chromium || command -v google-chrome; } >/dev/null
install_browser := apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -yqq install chromium

# pages are tested in Chromium; without it those tests are skipped
browser:
	@$(has_browser) || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& echo "installing Chromium for the browser tests" \
		&& timeout 600 sh -c '$(install_browser)' >/dev/null 2>&1 </dev/null; }; \
	$(has_browser) || echo "make: no Chromium, so browser tests are skipped;" \
		"'apt install chromium' installs it" >&2

TSC := $(VENV)/typescript/node_modules/.bin/tsc
install_tsc := npm install --prefix $(VENV)/typescript --no-audit --no-fund typescript@5.9.3

# the JavaScript modules have JSDoc types; without TypeScript they are not checked
typescript:
	@[ -x $(TSC) ] || { command -v npm >/dev/null \
		&& echo "installing TypeScript to check the JavaScript modules" \
		&& timeout 300 $(install_tsc) >/dev/null 2>&1 </dev/null; }; \
	[ -x $(TSC) ] || command -v tsc >/dev/null || echo "make: no TypeScript, so JavaScript" \
		"types are not checked; with npm installed, 'make test' installs it" >&2

# DATA=folder of Multi30k adds training; JOEYNMT=python adds JoeyNMT
bench: $(VENV)/.bench  ## benchmarks against peers
	@$(RUN) bench/attention.py
	@$(RUN) bench/decode.py
	@$(RUN) bench/explore.py
	@$(RUN) bench/serve.py
	@[ -z "$(DATA)" ] \
		|| $(RUN) bench/train.py --data "$(DATA)" $(if $(JOEYNMT),--joeynmt "$(JOEYNMT)")

clean:  ## remove .venv and what was built
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per extra, newer than the two files that name its dependencies.
$(addprefix $(VENV)/.,pictures explorer gallery docs dev bench): $(VENV)/.%: pyproject.toml constraints.txt | $(RUN)
	@echo "installing regard[$*] in $(VENV): minutes the first time"
	@$(RUN) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$*]' \
		|| $(call fail,pip could not install regard[$*]; $(pip_advice))
	@touch $@
	@if [ $* = dev ]; then cd $(VENV) && touch .pictures .explorer .gallery .docs; fi  # dev has theirs

$(RUN):
	@for python in $(PYTHONS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found=$$python; break; \
		fi; \
	done; \
	[ -n "$$found" ] || $(call fail,no Python 3.11 or newer among: $(PYTHONS); $(python_advice)); \
	$$found -c 'import ensurepip$(comma) venv' 2>/dev/null \
		|| $(call fail,$$found has no venv module; on Debian or Ubuntu: apt install python3-venv); \
	echo "creating $(VENV) with $$($$found --version)"; \
	$$found -m venv $(VENV) || $(call fail,$$found could not create $(VENV))

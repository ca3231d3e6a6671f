# One verb, one job. Each makes what it needs first, and is quick the second time.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TRAINED := build/weights
SHIPPED := src/surelabel/encoders/weights
CORES := $(shell getconf _NPROCESSORS_ONLN)

unexport PYTHONDONTWRITEBYTECODE # the suite starts many processes, which share compiled modules

.PHONY: setup demo test kills check fix docs weights collection

# Install the package and its tools, with the pinned versions, into .venv.
setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[dev]"
	@touch $@

# Tag, calibrate, measure, report and search the shipped collection.
demo: $(INSTALLED)
	$(BIN)/surelabel demo

# The whole suite: first the tests that start a Ray cluster, alone; then the others, on all cores.
test: setup
	$(BIN)/python -m pytest tests/cluster
	$(BIN)/python -m pytest --numprocesses $(CORES) --ignore tests/cluster

# Predict 20,000 images on a local Ray cluster whose processes are killed; then compare with a run without kills.
kills: $(INSTALLED)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
		timeout --kill-after 30 2400 $(BIN)/python benchmarks/cluster_kills.py "$$folder" --images 20000 --twin

# All that is not a test: style, types, generated pages, the wheel.
check: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(BIN)/python .ci/wheel.py

# Put right what a machine can put right.
fix: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Write the generated pages anew.
docs: $(INSTALLED)
	$(BIN)/python docs/generate.py

# Train both embedded encoders, then measure them and fit what they ship with. Takes hours;
# stop it at any time: it goes on where it was.
weights: setup
	for name in tiny-vit tiny-rn; do \
		$(BIN)/python training/pretrain.py $$name --out $(TRAINED) --threads $(CORES) && \
		cp $(TRAINED)/$$name.safetensors $(TRAINED)/$$name.json $(SHIPPED) && \
		cp $(TRAINED)/$$name.jsonl $(SHIPPED)/$$name.curve.jsonl || exit 1; \
	done
	$(BIN)/python training/out_of_distribution.py
	$(BIN)/python training/default_calibration.py
	$(BIN)/python training/model_card.py

# Draw the images inside the package again.
collection: setup
	$(BIN)/python training/bundled_collections.py

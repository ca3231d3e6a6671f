# Each target is a command for one task. It first builds the files that it needs, if they are missing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TRAINED := build/weights
SHIPPED := src/surelabel/encoders/weights
CORES := $(shell getconf _NPROCESSORS_ONLN)

unexport PYTHONDONTWRITEBYTECODE # the suite starts many processes, which share compiled modules

.PHONY: setup demo test browser kills load check fix docs weights collection

# Install the package and its tools, with the pinned versions, into .venv.
setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[dev]"
	@touch $@

# Tag, fit, calibrate, evaluate, report and search the bundled collection.
demo: $(INSTALLED)
	$(BIN)/surelabel demo

# Run the tests. The tests that start a Ray cluster run first and one at a time, the others on all cores.
test: setup
	$(BIN)/python -m pytest tests/cluster
	$(BIN)/python -m pytest --numprocesses $(CORES) --ignore tests/cluster --ignore tests/web/browser

# Test the page of the server in Chromium. Without Chromium, the tests are skipped.
browser: setup
	$(BIN)/python -m pytest tests/web/browser

# Predict 20,000 images on a local Ray cluster, kill its processes, and compare the results with an uninterrupted run.
kills: $(INSTALLED)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
		timeout --kill-after 30 2400 $(BIN)/python benchmarks/cluster_kills.py "$$folder" --images 20000 --compare

# Serve an index of 1,000,000 images to 32 clients for one minute: searches, thumbnails and uploads.
load: $(INSTALLED)
	$(BIN)/python benchmarks/serve.py --rows 1000000 --files --clients 32 --seconds 60

# Check the style, the types, the generated pages and the wheel.
check: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(BIN)/python .ci/wheel.py

# Correct the style automatically.
fix: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Write the generated pages again.
docs: $(INSTALLED)
	$(BIN)/python docs/generate.py

# Train both embedded encoders, fit their out-of-distribution detectors and calibrations, and measure them.
# The training takes hours. The same command resumes it after an interruption.
weights: setup
	for name in tiny-vit tiny-rn; do \
		$(BIN)/python training/pretrain.py $$name --out $(TRAINED) --threads $(CORES) && \
		cp $(TRAINED)/$$name.safetensors $(TRAINED)/$$name.json $(SHIPPED) && \
		cp $(TRAINED)/$$name.jsonl $(SHIPPED)/$$name.curve.jsonl || exit 1; \
	done
	$(BIN)/python training/out_of_distribution.py
	$(BIN)/python training/default_calibration.py
	$(BIN)/python training/model_card.py

# Render the images inside the package again.
collection: setup
	$(BIN)/python training/bundled_collections.py

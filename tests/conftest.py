import os
import shutil
import tempfile

import torch
from hypothesis import settings

torch.set_num_threads(1)  # the tensors here are small; threads only get in each other's way
settings.register_profile("surelabel", deadline=None, derandomize=True)  # the same on every run
settings.load_profile("surelabel")


collect_ignore_glob = ["saved/*/freeze.py"]  # written for the code of its version


def pytest_configure(config):
    """Give the suite a feature cache of its own, empty at first and gone at the end."""
    folder = tempfile.mkdtemp(prefix="surelabel-tests-")
    os.environ["SURELABEL_CACHE"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))

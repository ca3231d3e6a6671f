import pytest


@pytest.fixture
def folder(tmp_path):
    """A folder where the images a.jpg, b.jpg and sub/c d.jpg exist."""
    (tmp_path / "sub").mkdir()
    for name in ("a.jpg", "b.jpg", "sub/c d.jpg"):
        (tmp_path / name).touch()
    return tmp_path

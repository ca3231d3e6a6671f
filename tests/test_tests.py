"""A test must be able to fail, and a warning of ours must fail it."""

import ast
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("test_*.py"))
ANSWERS = {"allclose", "isclose", "array_equal", "equal", "isfinite", "gradcheck"}
EXPECTATIONS = {"raises", "warns", "fail"}


def called(node):
    """The last part of the name of what a call calls; empty for anything but a call."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def can_fail(function, helpers):
    """Whether a function asserts, expects an error, or calls something that does."""
    for node in ast.walk(function):
        name = called(node)
        if isinstance(node, ast.Assert | ast.Raise) or name.startswith("assert_"):
            return True
        if name in EXPECTATIONS | helpers:
            return True
    return False


def faults(code):
    """One sentence for each place that looks like a check and checks nothing."""
    tree = ast.parse(code)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    helpers = {f.name for f in functions if can_fail(f, set())}
    for function in functions:
        if function.name.startswith("test_") and not can_fail(function, helpers):
            yield f"line {function.lineno}: {function.name} cannot fail"
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            yield f"line {node.lineno}: the answer of a comparison is thrown away"
        if isinstance(node, ast.Expr) and called(node.value) in ANSWERS:
            yield f"line {node.lineno}: the answer of {called(node.value)} is thrown away"
        if called(node) == "raises" and "match" not in {k.arg for k in node.keywords}:
            yield f"line {node.lineno}: raises needs match="


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(HERE)))
def test_every_test_can_fail(file):
    found = list(faults(file.read_text(encoding="utf-8")))
    assert not found


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("assert a\n    a == b", "line 3: the answer of a comparison is thrown away"),
        ("assert a\n    np.allclose(a, b)", "line 3: the answer of allclose is thrown away"),
        ("with pytest.raises(ValueError):\n        f()", "line 2: raises needs match="),
        ("f()", "line 1: test_x cannot fail"),
    ],
)
def test_a_check_that_checks_nothing_is_seen(body, complaint):
    assert list(faults(f"def test_x():\n    {body}\n")) == [complaint]


def test_a_helper_that_asserts_counts_as_a_check():
    assert not list(faults("def same(a):\n    assert a\n\n\ndef test_x():\n    same(1)\n"))


@pytest.mark.parametrize("module", ["surelabel", "surelabel.losses.binary"])
@pytest.mark.parametrize("kind", [UserWarning, RuntimeWarning, DeprecationWarning])
def test_a_warning_in_our_own_code_is_an_error(module, kind):
    with pytest.raises(kind, match="careless"):
        warnings.warn_explicit("careless", kind, "some_file.py", 1, module=module)

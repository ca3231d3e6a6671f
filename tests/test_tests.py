"""A test must be able to fail, and a warning of ours must fail it."""

import ast
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("test_*.py"))
ANSWERS = {"allclose", "isclose", "array_equal", "equal", "isfinite", "gradcheck"}
EXPECTATIONS = {"raises", "warns", "fail"}
ASSERTIONS = ("assert_", "to_be_", "to_have_", "to_contain_")  # the latter of Playwright


def called(node):
    """The last part of the name of what a call calls; empty for anything but a call."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def checks(function):
    """Whether a function asserts or expects an error, and the names of what it calls."""
    asserts, names = False, set()
    for node in ast.walk(function):
        asserts = asserts or isinstance(node, ast.Assert | ast.Raise)
        if isinstance(node, ast.Call):
            names.add(called(node))
    asserts = asserts or any(name.startswith(ASSERTIONS) for name in names)
    return asserts or not names.isdisjoint(EXPECTATIONS), names


def faults(code):
    """One sentence for each place that looks like a check and checks nothing."""
    nodes = list(ast.walk(ast.parse(code)))
    functions = [(n, *checks(n)) for n in nodes if isinstance(n, ast.FunctionDef)]
    helpers = {function.name for function, can_fail, _ in functions if can_fail}
    for function, can_fail, names in functions:
        if function.name.startswith("test_") and not can_fail and names.isdisjoint(helpers):
            yield f"line {function.lineno}: {function.name} cannot fail"
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
            yield f"line {node.lineno}: the answer of a comparison is thrown away"
        if isinstance(node, ast.Expr) and called(node.value) in ANSWERS:
            yield f"line {node.lineno}: the answer of {called(node.value)} is thrown away"
        if called(node) == "raises" and "match" not in {k.arg for k in node.keywords}:
            yield f"line {node.lineno}: raises needs match="


FOLDERS = sorted({file.relative_to(HERE).parts[0] for file in FILES if file.parent != HERE})


@pytest.mark.parametrize("folder", [".", *FOLDERS])
def test_every_test_can_fail(folder):
    found = {
        str(file.relative_to(HERE)): sentences
        for file in (FILES if folder == "." else (HERE / folder).rglob("test_*.py"))
        if folder != "." or file.parent == HERE
        if (sentences := list(faults(file.read_text(encoding="utf-8"))))
    }
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

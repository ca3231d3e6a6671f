import pytest


@pytest.mark.parametrize(
    ("command", "former", "current"),
    [
        ("tag", "--where", "--heat-maps"),
        ("tag", "--as-many", "--expected-count"),
        ("evaluate", "--up-to", "--max-literals"),
        *((name, "--pictures", "--images-root") for name in ("fit", "calibrate", "evaluate")),
    ],
)
def test_the_error_for_a_renamed_option_names_the_current_option(command, former, current, run):
    result = run(command, former, "x")
    assert (result.code, result.out) == (2, "")
    assert f"No such option: {former}. Use the new name {current}." in result.err
    assert current in run(command, "--help").out


def test_a_renamed_option_of_another_command_is_an_ordinary_usage_error(run):
    result = run("search", "index", "lion", "--where", "x")
    assert result.code == 2
    assert "No such option" in result.err
    assert "Use the new name" not in result.err

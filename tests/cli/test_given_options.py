import click
import pytest
from click.testing import CliRunner

from surelabel.cli.given_options import check_options_are_not_given, is_option_given


@click.command()
@click.option("--model", default="tiny-vit")
@click.option("--labels", "names")
@click.option("--ignore", multiple=True)
@click.option("--remove", is_flag=True)
@click.option("--memory", type=int, default=512, expose_value=False)
def tag(model, names, ignore, remove):
    click.echo([name for name in ("model", "names", "ignore", "remove") if is_option_given(name)])
    check_options_are_not_given({"names", "ignore", "memory"}, "cannot be combined with scores.")


@pytest.mark.parametrize(
    ("arguments", "given", "refused"),
    [
        ([], [], None),
        (["--model", "tiny-vit"], ["model"], None),
        (["--remove"], ["remove"], None),
        (["--labels", ""], ["names"], "--labels"),
        (["--ignore", "a", "--remove"], ["ignore", "remove"], "--ignore"),
        (["--memory", "512"], [], "--memory"),
        (["--ignore", "a", "--labels", "b"], ["names", "ignore"], "--labels, --ignore"),
    ],
)
def test_options_that_the_user_gave_are_named(arguments, given, refused):
    done = CliRunner().invoke(tag, arguments)
    assert done.stdout == f"{given}\n"
    assert done.exit_code == (0 if refused is None else 2)
    message = f"Error: {refused} cannot be combined with scores. Remove {refused}.\n"
    assert done.stderr.endswith("" if refused is None else message)

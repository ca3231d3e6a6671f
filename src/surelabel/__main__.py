"""``python -m surelabel`` is the command ``surelabel``."""

from surelabel.cli import main

main(prog_name="surelabel")

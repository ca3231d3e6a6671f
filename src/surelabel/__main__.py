"""Run the command ``surelabel`` as ``python -m surelabel``."""

from surelabel.cli import main

main(prog_name="surelabel")

"""Entry point of ``python -m surelabel``, equivalent to the command ``surelabel``."""

from surelabel.cli import main

main(prog_name="surelabel")

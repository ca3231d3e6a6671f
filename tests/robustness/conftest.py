"""Files in this folder that are not collected."""

# these import a neighbour, as only scripts can
collect_ignore = ["kills_of_shards.py", "kills_while_rewriting.py", "kills_while_tagging.py"]

"""Files in this folder that are not collected."""

collect_ignore = ["kills_of_shards.py"]  # imports its neighbour, as only a script can

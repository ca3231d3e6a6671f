"""Bytes of images in files, members of tar archives, cells of Parquet tables and object stores.

An archive is written like a folder in an image path: ``shard.tar/0001.jpg`` is a member of a tar
archive, and ``table.parquet/image/17`` is row 17, counted from 0, of the column ``image``. This
module imports nothing, because the command line checks paths before it imports other packages.
"""

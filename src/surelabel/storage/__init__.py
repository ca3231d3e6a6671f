"""Read the bytes of images in files, tar archives, Parquet tables and object stores.

An image path contains an archive or a table like a folder: ``shard.tar/0001.jpg`` is a member of a
tar archive, and ``table.parquet/image/17`` is row 17, counted from 0, of the column ``image``. This
file imports nothing, because the command line checks paths before it imports other packages.
"""

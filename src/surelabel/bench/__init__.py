"""Comparisons that anybody can repeat: the papers' tables beside what we measure.

One folder a comparison; what they share stands here: data in three parts, cells that are computed
once, resampling, and tables in Markdown.
"""

from surelabel.bench.cells import Cells
from surelabel.bench.data import Material, of_file, of_scenes

__all__ = ["Cells", "Material", "of_file", "of_scenes"]

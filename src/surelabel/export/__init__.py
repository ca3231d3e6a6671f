"""Export recognizers to files that other programs run: ONNX, OpenVINO and PyTorch.

The entries of ``EXPORT_FORMATS`` are modules with the interface :class:`ExportFormat`, by the
suffix of their files.
"""

from surelabel.export.exporting import EXPORT_FORMATS, ExportReport, export_recognizer
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.export.text_tower import TextTowerReport, export_text_tower

__all__ = [
    "EXPORT_FORMATS",
    "ExportReport",
    "RecognizerGraph",
    "TextTowerReport",
    "export_recognizer",
    "export_text_tower",
]

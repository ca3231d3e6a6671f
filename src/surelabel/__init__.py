"""This package recognizes several labels per image, with calibrated probabilities."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from surelabel.package_imports import import_without_garbage_collection

if TYPE_CHECKING:
    from surelabel.cluster import Tagger
    from surelabel.config import Run, load_run
    from surelabel.data import (
        collection,
        correct_labels,
        find_images,
        open_predictions,
        read_label_tree,
        read_labels,
        read_scores,
    )
    from surelabel.errors import SurelabelError
    from surelabel.evaluation import Comparison, Evaluation
    from surelabel.recognizer import (
        Recognizer,
        audit,
        auto_label,
        compare,
        evaluate,
        guarantee,
        label_next,
        operating_point,
        query_encoder,
        rescore_index,
        search_with_guarantee,
        select_method,
        tag,
    )
    from surelabel.records import (
        Images,
        LabelledFeatures,
        LabelledImages,
        LabelledScores,
        LabelTree,
        PairFeatures,
        Pairs,
        Predictions,
        RowSelection,
    )
    from surelabel.report import report
    from surelabel.retrieval import Index, ShardedIndex
    from surelabel.retrieval.near_duplicates import find_duplicates

    __version__: str

_MODULE_OF = {
    "Comparison": "evaluation",
    "Evaluation": "evaluation",
    "Images": "records",
    "Index": "retrieval",
    "LabelTree": "records",
    "LabelledFeatures": "records",
    "LabelledImages": "records",
    "LabelledScores": "records",
    "PairFeatures": "records",
    "Pairs": "records",
    "Predictions": "records",
    "Recognizer": "recognizer",
    "RowSelection": "records",
    "Run": "config",
    "ShardedIndex": "retrieval",
    "SurelabelError": "errors",
    "Tagger": "cluster",
    "audit": "recognizer",
    "auto_label": "recognizer",
    "collection": "data",
    "compare": "recognizer",
    "correct_labels": "data",
    "evaluate": "recognizer",
    "find_duplicates": "retrieval.near_duplicates",
    "find_images": "data",
    "guarantee": "recognizer",
    "label_next": "recognizer",
    "load_run": "config",
    "open_predictions": "data",
    "operating_point": "recognizer",
    "read_label_tree": "data",
    "read_labels": "data",
    "read_scores": "data",
    "report": "report",
    "query_encoder": "recognizer",
    "rescore_index": "recognizer",
    "search_with_guarantee": "recognizer",
    "select_method": "recognizer",
    "tag": "recognizer",
}
__all__ = [
    "Comparison",
    "Evaluation",
    "Images",
    "Index",
    "LabelTree",
    "LabelledFeatures",
    "LabelledImages",
    "LabelledScores",
    "PairFeatures",
    "Pairs",
    "Predictions",
    "Recognizer",
    "RowSelection",
    "Run",
    "ShardedIndex",
    "SurelabelError",
    "Tagger",
    "__version__",
    "audit",
    "auto_label",
    "collection",
    "compare",
    "correct_labels",
    "evaluate",
    "find_duplicates",
    "find_images",
    "guarantee",
    "label_next",
    "load_run",
    "open_predictions",
    "operating_point",
    "query_encoder",
    "read_label_tree",
    "read_labels",
    "read_scores",
    "report",
    "rescore_index",
    "search_with_guarantee",
    "select_method",
    "tag",
]


class _LazyPackage(ModuleType):
    """Module class in which the import of a subpackage does not replace a public name.

    For example, ``surelabel.report`` remains a function after the subpackage is imported.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _LazyPackage


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("surelabel")
    if name not in _MODULE_OF:
        current = import_module("surelabel.migration").PACKAGE.get(name)
        hint = f"; it is now {current!r}" if current else ""
        raise AttributeError(f"module 'surelabel' has no attribute {name!r}{hint}")
    return getattr(import_without_garbage_collection(f"surelabel.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

from surelabel.export.check_images import views_of_recognizer
from surelabel.export.metadata import describe_export
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.recognizer import Recognizer
from surelabel.records import LabelTree


def test_the_metadata_have_the_tree_of_the_labels():
    recognizer = Recognizer.zero_shot("tiny-vit", ["lion", "bear"])
    graph = RecognizerGraph(recognizer)
    views = views_of_recognizer(recognizer, graph)
    assert describe_export(recognizer, graph, views).parents is None
    recognizer.label_tree = LabelTree({"bear": "lion"})
    assert describe_export(recognizer, graph, views).parents == {"bear": "lion"}

"""Predict the labels of images on a Ray cluster."""

from surelabel.cluster.cluster_tagging import ClusterTagging, tag_on_cluster
from surelabel.cluster.tagger import Tagger

__all__ = ["ClusterTagging", "Tagger", "tag_on_cluster"]

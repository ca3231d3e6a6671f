"""Define the methods that cannot be exported, with the reasons."""

REFUSED_METHODS = {  # entry of METHODS: reason, the end of a sentence that starts with its name
    "cocoop": (
        "the text tower encodes all labels again for each image. Fit the method coop or kgcoop, "
        "whose label texts do not depend on the image"
    ),
    "crops": (
        "its random crops depend on a hash of the image file, and their number depends on the "
        "scores. Use the method tiles, whose views are the same for all images"
    ),
    "extra_trees": (
        "a forest of decision trees is not a tensor computation. Use the method linear or "
        "ml_decoder"
    ),
    "gradient_boosting": (
        "a forest of decision trees is not a tensor computation. Use the method linear or "
        "ml_decoder"
    ),
}

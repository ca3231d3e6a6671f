"""This module contains tables 3 and 4 of "Towards Calibrated Multi-label Deep Neural Networks".

Cheng and Vasconcelos, Towards Calibrated Multi-label Deep Neural Networks, CVPR 2024. The values
are mAP@y, mAP@x, ACE and MCE in percent. The paper does not state the bins, whether labels are
pooled, or the weight lambda of label-pair regularization. In the printed Table 4, the headers of
the first two columns are exchanged, as the BCE row shows. All columns of this module are in the
order of Table 3.
"""

COLUMNS = ("mAP@y", "mAP@x", "ACE", "MCE")
PUBLISHED: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "COCO, ECA-ResNet50-T": {
        "BCE": (72.2, 82.4, 8.2, 17.0),
        "BCE + LPR": (72.4, 82.9, 6.5, 14.8),
        "TWL + temperature": (77.2, 87.9, 17.2, 33.6),
        "focal": (74.8, 85.9, 20.1, 34.9),
        "focal + map": (74.8, 85.9, 11.1, 20.3),
        "focal + LPR": (75.1, 86.3, 19.7, 36.4),
        "ASY": (77.5, 88.2, 30.6, 46.0),
        "ASY + the paper's map": (77.0, 87.8, 15.0, 26.0),
        "ASY + LPR": (77.2, 88.1, 29.4, 44.7),
        "SPA": (77.8, 88.4, 5.3, 12.0),
        "SPA + LPR": (77.7, 88.6, 4.2, 9.3),
    },
    "COCO, ViT-B/32": {
        "BCE": (70.1, 81.9, 6.0, 15.5),
        "TWL + temperature": (76.2, 88.0, 14.2, 31.3),
        "focal": (72.0, 83.8, 23.6, 36.2),
        "focal + map": (72.0, 83.8, 8.5, 17.9),
        "ASY": (76.4, 87.7, 29.5, 48.6),
        "ASY + the paper's map": (76.2, 87.3, 16.2, 26.2),
        "SPA": (76.8, 87.9, 4.8, 10.7),
        "SPA + LPR": (76.6, 88.1, 2.1, 5.3),
    },
    "VOC 2012, ECA-ResNet50-T": {
        "BCE": (85.1, 92.4, 6.9, 13.8),
        "TWL + temperature": (89.1, 93.7, 10.8, 22.0),
        "focal": (87.4, 93.3, 19.0, 35.8),
        "focal + map": (87.4, 93.3, 7.0, 16.5),
        "ASY": (89.6, 94.6, 26.4, 47.7),
        "ASY + the paper's map": (89.1, 94.3, 12.9, 24.7),
        "SPA": (89.5, 94.1, 5.4, 14.9),
        "SPA + LPR": (89.9, 94.3, 4.9, 11.0),
    },
    "VOC 2012, ViT-B/32": {
        "BCE": (86.9, 92.7, 7.8, 16.7),
        "TWL + temperature": (90.1, 94.5, 14.5, 28.3),
        "focal": (88.4, 93.6, 16.2, 31.7),
        "focal + map": (88.4, 93.6, 9.3, 20.7),
        "ASY": (90.4, 94.7, 31.7, 52.8),
        "ASY + the paper's map": (89.8, 94.2, 15.5, 33.0),
        "SPA": (90.0, 93.9, 6.1, 14.4),
        "SPA + LPR": (90.4, 94.8, 5.5, 12.7),
    },
}

"""OpenCV's DNN module; variant "classic" takes the engine of OpenCV 4, else the new one."""

import cv2


def version():
    """Version of the engine."""
    return cv2.__version__


def load(path, feeds, outputs, variant):
    """Returns a function from feeds to outputs."""
    cv2.setNumThreads(1)
    engine = cv2.dnn.ENGINE_CLASSIC if variant == "classic" else cv2.dnn.ENGINE_NEW
    net = cv2.dnn.readNetFromONNX(path, engine=engine)

    def run(feeds):
        for name, array in feeds.items():
            net.setInput(array, name)
        return list(net.forward(outputs))

    return run

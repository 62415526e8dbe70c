"""Shapes on a drawing board, with boxes around them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self):
        return self.right - self.left

    @property
    def height(self):
        return self.bottom - self.top

    def contains(self, x, y):
        return self.left <= x <= self.right and self.top <= y <= self.bottom

    def grown(self, margin):
        return Box(self.left - margin, self.top - margin, self.right + margin, self.bottom + margin)


def union(boxes):
    res = None
    for box in boxes:
        if res is None:
            res = box
        else:
            res = Box(
                min(res.left, box.left),
                min(res.top, box.top),
                max(res.right, box.right),
                max(res.bottom, box.bottom),
            )
    return res


def scaled(box, factor):
    center_x = (box.left + box.right) / 2
    center_y = (box.top + box.bottom) / 2
    half_width = box.width * factor / 2
    half_height = box.height * factor / 2
    return Box(center_x - half_width, center_y - half_height, center_x + half_width, center_y + half_height)


def hits(boxes, x, y):
    found = []
    for index, box in enumerate(boxes):
        if box.contains(x, y):
            found.append(index)
    return found

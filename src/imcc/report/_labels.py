"""Names beside points, so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Say whether two boxes have an area in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )

    def contains(self, other: Box) -> bool:
        """Say whether another box is inside."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the box that is nearest to another one."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)

    def distance(self, x: float, y: float) -> float:
        """Return how far a point is from the box."""
        return math.dist((x, y), self.nearest(x, y))


# Where a name may stand: right, left, above, below, then the corners.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


def place_labels(
    points: np.ndarray, sizes: Sequence[tuple[float, float]], bounds: Box, radius: float
) -> list[Box]:
    """Find a place for a name beside each point.

    Each name takes the nearest free place, further out if those beside the point are taken; names
    whose points are crowded choose first.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        The points.
    sizes : sequence of (width, height)
        Of the names.
    bounds : Box
        Where names may be.
    radius : float
        Of the markers.

    Returns
    -------
    list of Box
        They overlap neither each other nor a marker, as long as there is room at all.

    Examples
    --------
    >>> import numpy as np
    >>> from imcc.report._labels import Box, place_labels
    >>> place_labels(np.array([[50.0, 50.0]]), [(30, 10)], Box(0, 0, 100, 100), radius=4)
    [Box(left=57.0, bottom=45.0, right=87.0, top=55.0)]
    """
    markers = [Box(x - radius, y - radius, x + radius, y + radius) for x, y in points]
    near = [sum(math.dist(a, b) < 80 for b in points) for a in points]
    placed: dict[int, Box] = {}
    for i in sorted(range(len(points)), key=lambda i: -near[i]):
        taken = [*markers, *placed.values()]
        candidates = _candidates(points[i], sizes[i], radius + 3, bounds)
        free = (box for box in candidates if not any(box.overlaps(other) for other in taken))
        # Out of room (a hundred names): the place beside the point is the least bad.
        placed[i] = next(free, _beside(points[i], sizes[i], radius + 3, (1, 0)))
    return [placed[i] for i in range(len(points))]


def _candidates(point: np.ndarray, size: tuple[float, float], gap: float, bounds: Box) -> list[Box]:
    found = []
    for out in range(0, 240, 5):
        for side in _SIDES:
            box = _beside(point, size, gap + out, side)
            if bounds.contains(box):
                found.append(box)
    return found


def _beside(point: np.ndarray, size: tuple[float, float], gap: float, side: tuple[int, int]) -> Box:
    x, y = float(point[0]), float(point[1])
    width, height = size
    right, up = side
    left = {1: x + gap, 0: x - width / 2, -1: x - gap - width}[right]
    # At a corner, a name may begin nearer to its point.
    lift = gap if right == 0 else gap / 2
    bottom = {1: y + lift, 0: y - height / 2, -1: y - lift - height}[up]
    return Box(left, bottom, left + width, bottom + height)

"""Images beside each other, each under its caption; and heat laid over an image."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from unrolled.pictures.canvas import quietly
from unrolled.pictures.kinds import Images
from unrolled.pictures.letters import phrase
from unrolled.pictures.png import pixels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 1.25  # inches of an image
LETTERS = 20  # of a caption in a line


def heated(image: Any, heat: Any) -> Any:
    """An image [H, W, 3] darkened where nothing is looked at: heat [h, w] >= 0, brightest where it is largest."""
    import numpy as np

    pixels, weights = np.asarray(image, np.float64), np.asarray(heat, np.float64)
    rows = np.arange(pixels.shape[0]) * weights.shape[0] // pixels.shape[0]  # the region that each pixel is in
    columns = np.arange(pixels.shape[1]) * weights.shape[1] // pixels.shape[1]
    light = weights[rows][:, columns] / max(float(weights.max()), 1e-12)  # [H, W]
    return (pixels * (0.15 + 0.85 * light[:, :, None])).round().astype(np.uint8)


def draw_images(picture: Images) -> Figure:
    """As many rows as are needed; pixels are squares."""
    from matplotlib.figure import Figure

    n = len(picture.images)
    across = min(max(n, 1), picture.across)
    down = -(-n // across) or 1
    captions = ["\n".join(textwrap.wrap(phrase(each, 6 * LETTERS), LETTERS)[:4]) for each in picture.captions]
    most = max((caption.count("\n") + 1 for caption in captions if caption), default=0)
    with quietly():
        figure = Figure(figsize=(across * (SIDE + 0.25), down * (SIDE + 0.1 + 0.15 * most)), layout="constrained")
        frames: Any = figure.subplots(down, across, squeeze=False)
    for i, axes in enumerate(frames.flat):
        axes.set_axis_off()
        if i < n and picture.images[i]:
            axes.imshow(pixels_of(picture.images[i]), interpolation="none")
            axes.set_title(captions[i] if i < len(captions) else "", fontsize=8.5)
    return figure

"""This processor as a card: what it reaches with the model's own weights, with one BLAS thread."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from course.lm.forward import Model
from course.lm.loading import FOLDERS
from course.lm.threads import one_thread
from course.models import ModelSpec
from course.models.gpus import GPU

ROWS, TRIES = 64, 9


def spec(name: str = "model") -> ModelSpec:
    """The shape of the model, by its config.json. Stored in float16; a step reads float32, twice as many bytes."""
    return ModelSpec.from_config(FOLDERS[name] / "config.json")


def processor(model: Model) -> GPU:
    """Bandwidth of one pass over the weights, and FLOP/s of their products with 64 rows; the medians of nine.

    A data sheet for `calibration.fit_run`. Measured now, so that it differs a little each time.
    """
    matrices = [part for layer in model.layers for part in (layer.qkv, layer.output, layer.gate_up, layer.down)]
    matrices.append(model.unembedding)
    inputs = [np.ones((ROWS, matrix.shape[0]), np.float32) for matrix in matrices]
    flops = 2 * ROWS * sum(matrix.size for matrix in matrices)
    one_row = [rows[:1] for rows in inputs]
    with one_thread():
        reading = _seconds(lambda: [x @ matrix for x, matrix in zip(one_row, matrices, strict=True)])
        product = _seconds(lambda: [x @ matrix for x, matrix in zip(inputs, matrices, strict=True)])
    return GPU(
        "this processor",
        read_bandwidth=sum(matrix.nbytes for matrix in matrices) / reading,
        matrix_flops=flops / product,
        seconds_per_kernel=0.0,
        source="measured now, with the weights of the language model and one BLAS thread",
    )


def _seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(TRIES + 1):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))

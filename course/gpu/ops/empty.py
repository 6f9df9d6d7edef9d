"""A launch that does nothing: what of a step is only the launch. Launched by `decode_step.DecodeStep`."""


def twin(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    """The kernel in NumPy, which has nothing to compute."""

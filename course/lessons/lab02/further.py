"""The tables of lab 02's optional notebook."""

__all__: list[str] = []

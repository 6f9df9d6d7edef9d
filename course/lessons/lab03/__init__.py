"""Lab 03: Little's law."""

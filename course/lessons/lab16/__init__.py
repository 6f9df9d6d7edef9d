"""Lab 16: measuring honestly."""

"""Lab 04: static, dynamic, continuous."""

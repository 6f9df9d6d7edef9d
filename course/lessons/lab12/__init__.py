"""Lab 12: launch overhead."""

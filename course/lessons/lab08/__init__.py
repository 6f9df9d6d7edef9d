"""Lab 08: KV budgeting."""

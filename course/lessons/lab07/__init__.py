"""Lab 07: chunked prefill."""

"""vLLM's own scheduler, run on a CPU without a model, and what it did with small workloads (`make vllm-check`)."""

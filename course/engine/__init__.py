"""One engine: `serving.serve` sends a workload through a policy, `run.Run` comes out, `metrics` say what it means."""

"""The scenarios of the labs: pure functions of what a slider sets, from a few numbers to runs and curves.

`one_engine` is lab 03's service, `three_batchers` lab 04's; `side_by_side` runs one workload through several policies.
`long_prompt` and `prompt_chunks` are lab 07's.
"""

"""What is launched, one file an operation, under the name of its kernel in kernels/.

Each file has three parts: the host side, which checks a launch once so that it can be made many times (`prepare(queue,
...)` for the operations of a transformer's step); `twin(...)`, the same in NumPy with the same roundings, which runs
if there is no compiler; and `reference(...)`, the definition in float64, which tests and measurements compare with.

Arrays hold numbers of a kind, "bf16", "fp16" or "fp32" (see `numbers`); bf16 is kept as its bits, uint16.
"""

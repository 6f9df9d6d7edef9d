<<<<<<< HEAD
"""What a transformer's step is made of, one file an operation.

Each file has the same three parts: `prepared(queue, ...)`, a launch checked once and ready to be called many times;
`twin(...)`, the same in NumPy with the same roundings, which runs where there is no compiler; and `reference(...)`, the
definition in float64, which tests and measurements compare with. The kernels are in kernels/, under the same names.

Arrays hold numbers of a kind, "bf16", "fp16" or "fp32" (see `numbers`); bf16 is kept as its bits, uint16.
=======
"""What is launched, one file an operation, under the name of its kernel in kernels/.

Each file has three parts: the host side, which checks a launch once so that it can be made many times; `twin(...)`, the
same in NumPy with the same roundings, which runs where there is no compiler; and `reference(...)`, the definition in
float64, which tests and measurements compare with.
>>>>>>> main
"""

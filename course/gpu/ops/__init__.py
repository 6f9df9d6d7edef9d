"""What is launched, one file an operation, under the name of its kernel in kernels/.

Each file has three parts: the host side, which checks a launch once so that it can be made many times; `twin(...)`, the
same in NumPy with the same roundings, which runs where there is no compiler; and `reference(...)`, the definition in
float64, which tests and measurements compare with.
"""

"""What can go wrong between a kernel's source and its result, told in one sentence each."""


class KernelError(RuntimeError):
    """A kernel that does not compile or breaks off, or a device that cannot be used; the message is a sentence."""

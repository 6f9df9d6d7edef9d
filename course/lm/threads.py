"""How many threads the matrix products take: `course.base.threads`."""

from course.base.threads import one_thread

__all__ = ["one_thread"]

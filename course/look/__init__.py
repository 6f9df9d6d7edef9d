"""What people paste, read: which printed numbers agree, which limit holds the server, and what cannot be told."""

from course.look.answer import Answer, look

__all__ = ["Answer", "look"]

"""What the tests of all lessons share."""

from tests.helpers.remembered import words_from_memory as words_from_memory

"""A printed number as the interval that its digits leave open, and sums and products of such numbers."""

from dataclasses import dataclass

SLACK = 1e-9  # of the larger number: sums of decimals that are no binary fractions


@dataclass(frozen=True)
class Number:
    """What was printed, and the least and the most that it may have been. Products are of positive numbers."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> "Number":
        """Half a unit of the last printed digit either way; a whole number is exact.

        Engines round to two decimals or more and drop zeros at the end: 36.0 was 36.00.
        """
        digits = text.replace(",", "")
        places, value = len(digits.partition(".")[2]), float(digits)
        half = 0.5 * 10.0 ** -max(places, 2) if places else 0.0
        return cls(value, value - half, value + half)

    @classmethod
    def exact(cls, value: float) -> "Number":
        """A number that was not rounded."""
        return cls(value, value, value)

    def meets(self, other: "Number") -> bool:
        """Whether both may be the same number."""
        slack = SLACK * max(abs(self.high), abs(other.high))
        return self.low - slack <= other.high and other.low <= self.high + slack

    def __add__(self, other: "Number") -> "Number":
        return Number(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: "Number") -> "Number":
        return Number(self.value - other.value, self.low - other.high, self.high - other.low)

    def __mul__(self, other: "Number") -> "Number":
        return Number(self.value * other.value, self.low * other.low, self.high * other.high)

    def __truediv__(self, other: "Number") -> "Number":
        return Number(self.value / other.value, self.low / other.high, self.high / other.low)

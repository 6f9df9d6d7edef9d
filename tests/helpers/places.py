"""Where the tests find what they read."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "solutions"
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"  # beside the project where it is developed; absent elsewhere
REAL = SHARED / "realinputs"

"""The devices and the language model, as the tests of `course` have them."""

from tests.gpu.conftest import on as on
from tests.lm.conftest import model as model

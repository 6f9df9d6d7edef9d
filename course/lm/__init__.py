"""A small language model of our own, in NumPy: 3.9 million parameters that count, spell, make lists and tell stories.

    from course import lm

    model = lm.load()
    model.answer("Count from 3 to 9.")  # '3, 4, 5, 6, 7, 8, 9.'

`model.forward` computes one step of any batch over a paged cache; the scheduler decides what is in it.
`lm.load(device="cuda")` computes the same on a GPU. CARD.md says how the model was made and what it cannot do.
"""

from course.lm.cache import PagedKV
from course.lm.config import Config
from course.lm.errors import LMError
from course.lm.forward import Model
from course.lm.live import Questions, Speaking, SpokenRun, full_cache, serve_live
from course.lm.loading import load
from course.lm.sampling import GREEDY, Sampling
from course.lm.speaker import LanguageModel
from course.lm.tokenizer import TextStream, Tokenizer
from course.lm.watch import Frame, Part, Watch, step_clock

__all__ = [
    "GREEDY",
    "Config",
    "Frame",
    "LMError",
    "LanguageModel",
    "Model",
    "PagedKV",
    "Part",
    "Questions",
    "Sampling",
    "Speaking",
    "SpokenRun",
    "TextStream",
    "Tokenizer",
    "Watch",
    "full_cache",
    "load",
    "serve_live",
    "step_clock",
]

"""A Llama-shaped model on a GPU, or on whatever is there: one step at a time, as an engine asks for them.

    queue = ops.queue.queue(gpu.device())
    llama = Llama(queue, Shape.of(models.model("llama-3.1-8b")), blocks=4_096, max_tokens=2_048)
    step = Step(llama, chunks=[(512, 0)], lengths=[700] * 32)   # a prompt chunk of 512 tokens beside 32 decodes
    step.write(ids, tables)
    step.run()                                                  # or step.captured()()
    step.logits()                                               # of the chunk's last token, and of each decode

Checked against `reference.forward`, which is the model in plain NumPy.
"""

from course.gpu.transformer.llama import Llama
from course.gpu.transformer.shape import Shape
from course.gpu.transformer.step import Step
from course.gpu.transformer.weights import Weights

__all__ = ["Llama", "Shape", "Step", "Weights"]

"""Lab 08, KV budgeting: the ticket of "Break it"."""

from course.exercises.spec import Question, Ticket

CAUSE = Question(
    "cause",
    "What is the likeliest cause?",
    (
        ("The steps are slow: the GPU computes too much.", "Then all gaps would grow a little, but none to seconds."),
        ("The pool is full, and requests lose blocks.", "They stop and are computed again."),
        ("Requests wait too long for a slot at first.", "That delays first tokens, but it stops no answer."),
    ),
    "b",
)
NEXT = Question(
    "next",
    "Which measurement would confirm it?",
    (
        ("vllm:num_preemptions_total", "It counts them."),
        ("GPU utilisation, nvidia-smi", "It is near 100% whether work is done once or twice."),
        ("errors in the engine's log", "A preemption is not an error."),
    ),
    "a",
)
REPAIR = Question(
    "repair",
    "The counter rose by 81. What do you change first?",
    (
        ("raise --max-num-batched-tokens", "A step may then hold more tokens; the pool holds no more."),
        ("lower --max-model-len", "That changes the printed concurrency. The pool stays as it is."),
        ("lower --max-num-seqs", "To below what the pool holds on average."),
    ),
    "c",
)
TICKET = Ticket(
    story="Since Tuesday answers stop in the middle of a sentence for up to 2.3 s. No errors; tokens/s as before.",
    questions=(CAUSE, NEXT, REPAIR),
    setting="--max-num-seqs went from 23 to 256, because requests waited: 81 preemptions instead of none, 11 more "
    "tokens/s.",
)

"""Lab 04, static, dynamic and continuous batching: what it asks, and the mistakes it knows."""

from functools import lru_cache

import numpy as np

from course import traces
from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction, Question
from course.lessons.lab04 import refill


@lru_cache(maxsize=1)
def trace_lengths() -> np.ndarray:
    """Answer lengths of the example trace, in order of arrival."""
    return traces.read(traces.example()).output_tokens


def slot_steps_per_token(lengths: np.ndarray, slots: int = 32) -> float:
    """Slot-steps that static batching pays for each token somebody wants, over the full batches of `lengths`."""
    batches = lengths[: len(lengths) // slots * slots].reshape(-1, slots)
    return float(batches.max(axis=1).mean() / batches.mean())


TRACE = slot_steps_per_token(trace_lengths())

LAB = LabSpec(
    number="04",
    title="Static, dynamic, continuous",
    predictions=(
        Prediction(
            id="gain",
            question="More users wait than the card can serve. Answers vary as in a chat (coefficient of variation 1), "
            "32 slots. How many tokens/s does continuous batching deliver, compared with dynamic batching?",
            options=(
                (
                    "about 32 times as many, one for each slot",
                    "slots-are-speed",
                    "Dynamic batching has the same slots. What differs is how many of them do work that somebody "
                    "wants.",
                ),
                "about four times as many",
                (
                    "20 to 30% more",
                    "gain-is-a-constant",
                    "That figure was measured where answers were alike. The gain is the padding, and the padding is "
                    "the spread.",
                ),
                (
                    "about the same",
                    "busy-is-useful",
                    "The card is as busy in both. In a dynamic batch most of it is padding, and no dashboard shows "
                    "that.",
                ),
            ),
            right="b",
            why="A batch of 32 runs until its longest answer ends, and that one is over four times the mean. The "
            "quoted 20 to 30% belongs to answers of nearly equal length.",
        ),
        Prediction(
            id="bigger",
            question="You go from 8 to 32 slots to help the static batcher. What happens to its disadvantage against "
            "continuous batching?",
            options=(
                "it grows",
                (
                    "it shrinks",
                    "bigger-batches-heal",
                    "A bigger batch makes both faster. Only one of them must wait for the longest answer in it.",
                ),
                (
                    "it stays as it is",
                    "same-batch-same-ratio",
                    "The batch is the same, and the longest answer in it is not: of more draws the largest is larger.",
                ),
            ),
            right="a",
            why="Both get faster, but the longest of 32 answers is longer than the longest of 8, and everybody in a "
            "static batch waits for it: in this lab's run 2.6 times behind at 8 slots, 4.0 at 32.",
        ),
        Prediction(
            id="below",
            question="At 3 requests/s every one of the three policies keeps up. Who delivers the most tokens/s?",
            options=(
                (
                    "static, whose batches are always full",
                    "full-batches-deliver-more",
                    "A full batch is efficient. While there is room to spare, what is delivered is what was asked "
                    "for.",
                ),
                "all three deliver the same",
                (
                    "continuous, by a little",
                    "better-policy-more-tokens",
                    "There are no more tokens to deliver than people ask for. Look at how long they wait.",
                ),
                (
                    "continuous, by far",
                    "better-policy-more-tokens",
                    "There are no more tokens to deliver than people ask for. Look at how long they wait.",
                ),
            ),
            right="b",
            why="Below saturation all of them deliver what is asked for, and no more. What differs is how long people "
            "wait: compare latency there, or goodput, and compare tokens/s only at saturation.",
        ),
    ),
    exercises=(
        Exercise(
            id="waste",
            title="The waste of one batch",
            solution=100,
            rtol=1e-3,
            mistakes=(
                Mistake(80, "That is what one of the two shorter answers wastes. Count the padding of every slot."),
                Mistake(100 / 3, "That is a mean over the slots. How many slot-steps are padding in all?"),
                Mistake(1 / 3, "That is a share of all that the batch pays for. Count slot-steps."),
                Mistake(200, "Those are the slot-steps somebody wanted. What does the batch pay for on top of them?"),
                Mistake(300, "That is all that the batch pays for: slots times steps. Part of it is wanted."),
            ),
            hint="Draw three lanes of equal length, and mark where each answer ends.",
            plain="Every slot pays as many steps as the longest answer has tokens. Take off the tokens that "
            "somebody wanted.",
        ),
        Exercise(
            id="bound",
            title="The bound for exponential lengths",
            solution=sum(1 / i for i in range(1, 33)),
            rtol=5e-3,
            mistakes=(
                Mistake(
                    2.0,
                    "That is 1 + CV. The spread alone does not tell: the longest of a batch also depends on how many "
                    "draws it has.",
                ),
                Mistake(32.0, "That is the batch. One answer would have to be as long as 32 mean answers."),
                Mistake(float(np.log(32)), "The logarithm comes near for huge batches. Add up the waits themselves."),
                Mistake(
                    sum(1 / i for i in range(2, 33)), "One wait is missing: that for the very last answer to end."
                ),
            ),
            hint="Go on from the two slots of the text: how long until one of three ends, one of four? Each answer "
            "that still runs is as good as new. Add up all such waits.",
            plain="The wait until the next of n answers ends is the mean by n. Add these up, from all the slots "
            "down to the last answer.",
        ),
        Exercise(
            id="refill",
            title="Write the refill",
            solution=refill.refill,
            evaluate=refill.refill_result,
            rtol=1e-6,
            mistakes=(
                Mistake(
                    refill.only_when_empty,
                    "Newcomers join only once the whole batch has gone: free slots stay empty in between. A slot can "
                    "be refilled while others still run.",
                ),
                Mistake(
                    refill.forgets_the_running,
                    "Whoever is not in the dictionary computes nothing. Who must be in it besides the newcomers?",
                ),
                Mistake(
                    refill.ignores_the_slots,
                    "Everybody gets in, and the engine refuses: it has max_num_seqs slots. How many of them are free?",
                ),
                Mistake(
                    refill.counts_only_newcomers,
                    "You admit as many newcomers as there are slots in all, but some of those slots are taken.",
                ),
                Mistake(
                    refill.stops_for_newcomers,
                    "It works, but whoever runs stands still in every step in which somebody joins. One step can hold "
                    "both: decodes and new prompts.",
                ),
                Mistake(
                    refill.one_at_a_time,
                    "One newcomer a step, even when several slots are free: fill all of them in the same step.",
                ),
                Mistake(
                    refill.one_token_each,
                    "A newcomer gets one token of its prompt a step, so its first answer token is late. `remaining` "
                    "says how many tokens a request has to compute before it emits one.",
                ),
            ),
            hint="The run has 4 slots; a step takes 1 s and 0.2 s for every prompt token in it.",
            plain="Put everybody who runs into the dictionary, with what remains of each. Then add as many of those"
            " who wait as there are free slots, in order, each with what remains of it.",
        ),
        Exercise(
            id="trace",
            title="The waste on a trace",
            solution=TRACE,
            rtol=5e-3,
            mistakes=(
                Mistake(
                    float(trace_lengths().max() / trace_lengths().mean()),
                    "That takes the longest answer of the whole trace for every batch. Most batches never meet it.",
                ),
                Mistake(TRACE - 1, "That is the padding for each wanted token. The wanted token is paid for as well."),
                Mistake(1 / TRACE, "That is the share of the slot-steps that somebody wanted. Turn it round."),
                Mistake(1 - 1 / TRACE, "That is the share of padding. Compare all that is paid with what is wanted."),
                Mistake(TRACE / 32, "Those are steps for each wanted token. A step of a batch costs all its slots."),
                Mistake(
                    slot_steps_per_token(np.sort(trace_lengths())),
                    "You sorted by length. That would be a fine policy, if anybody knew the lengths beforehand. Keep "
                    "the order of arrival.",
                ),
            ),
            hint="Each row of 32 costs 32 slots for as many steps as its longest answer has tokens.",
            plain="Cut the lengths into rows of as many as there are slots. Each row costs its slots times its "
            "longest answer. Divide the sum of these costs by the sum of all lengths in the rows.",
        ),
    ),
    quiz=(
        Question(
            id="why",
            question="Why does continuous batching beat dynamic batching at saturation?",
            choices=(
                ("It refills a slot as soon as its answer ends.",
                 "No slot-step is spent on padding, and the gain is as large as the padding was: nothing for equal "
                 "lengths, fourfold at a coefficient of variation of 1 with 32 slots."),
                ("The GPU idles in a dynamic batch once short answers have ended.",
                 "It does not idle: it computes padding at full speed, and every dashboard shows it busy. Count "
                 "wasted slot-steps instead."),
                ("It makes larger batches than max_num_seqs.",
                 "max_num_seqs bounds both alike. The slots are the same; what fills them differs."),
            ),
            right="a",
        ),
        Question(
            id="size",
            question="A colleague asks which batch size the vLLM server uses. What do you answer?",
            choices=(
                ("max_num_seqs, once the server is warm.",
                 "That is only the most it may hold; at light load it holds one or two."),
                ("The one the dynamic batcher in front of it forms.",
                 "The engine mixes requests by itself. A batcher in front only delays them."),
                ("There is none: each step decides anew.",
                 "Up to max_num_seqs, the token budget and the memory. As long as no limit is reached, Little's law "
                 "sets it: arrival rate times time in the system."),
            ),
            right="c",
        ),
        Question(
            id="static",
            question="When is static batching a reasonable choice for an LLM?",
            choices=(
                ("Never: continuous batching is better wherever it runs.",
                 "It wastes nothing when the lengths are equal, and offline nobody waits for the fill."),
                ("Offline, with prompts and answers of nearly equal length.",
                 "Then hardly a slot-step is padding. With prompts of unequal length a static batch pads those too, "
                 "even for one-token answers."),
                ("For chat at light load, when there are free slots anyway.",
                 "At light load it waits for its batch to fill, for a minute and more."),
            ),
            right="b",
        ),
        Question(
            id="paged",
            question="Does continuous batching need PagedAttention?",
            choices=(
                ("No, but paging lets more requests fit.",
                 "More slots are filled then. Scheduling by iterations and storing by pages are two ideas that help "
                 "each other."),
                ("Yes: without pages, requests cannot join a running batch.",
                 "Orca did it in 2022 with one contiguous reservation a request."),
                ("No, and paging changes nothing for it.", "It changes how many requests fit, and with it the batch."),
            ),
            right="a",
        ),
        Question(
            id="triton",
            question="An image classifier behind Triton, 1,000 images/s from people who come by themselves: you "
            "raise max_queue_delay_microseconds from 0 to 10,000. What happens?",
            choices=(
                ("Throughput rises, since each launch carries more images.",
                 "In an open loop it delivers what arrives, as long as it keeps up: 1,000 images/s, as before. (A load "
                 "test with a fixed number of clients can show more, or less.)"),
                ("Latency rises, and the GPU is busy for less of the time.",
                 "Batches grow. That is the trade: a few milliseconds of everybody's time for room on the GPU, which "
                 "pays if another model can use it."),
                ("Latency falls, since fuller batches get more from the GPU.",
                 "Everybody waits for the batch to fill: latency rises."),
            ),
            right="b",
        ),
    ),
)  # fmt: skip

"""Lab 04, static, dynamic, continuous: the ticket of "Break it" and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "floor",
        "16 GB of weights are read at 2 TB/s. How long does a decode step take at least?",
        (
            ("0.125 ms", "That is bytes/s over bytes, without the units."),
            ("8 ms", "16 / 2,000 s; K and V come on top."),
            ("8 ms for each sequence", "They share one read."),
        ),
        "b",
        lab="02",
    ),
)

TICKET = Ticket(
    story='From the night shift: "In the evening, with fifteen times the traffic, an answer takes 15 s. From 1 to 4 '
    "o'clock it takes 80 s, and the GPU is almost idle. Is the card broken?\"",
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                (
                    "The evening's queue is still there.",
                    "Then the GPU would be busy. It is busy for 5% of the time.",
                ),
                (
                    "Each batch waits until it is full.",
                    "At 0.2 requests/s it takes 155 s until 31 more requests have come.",
                ),
                (
                    "The GPU lowers its clock when idle.",
                    "Then each step would take longer, and the GPU would be busy for more of the time.",
                ),
            ),
            "b",
        ),
        Question(
            "measure",
            "What do you measure next?",
            (
                (
                    "the wait before the first step",
                    "It is nine tenths of the time to an answer.",
                ),
                (
                    "the time of a step",
                    "A few milliseconds, by day and by night: that does not add up to a minute.",
                ),
                (
                    "the length of the answers",
                    "As long as by day. Longer answers would also keep the GPU busier.",
                ),
            ),
            "a",
        ),
        Question(
            "repair",
            "What do you change?",
            (
                ("twice as many slots", "A batch would wait for even more requests."),
                ("a second GPU beside it", "Each of the two would then fill its batches half as fast."),
                (
                    "continuous batching",
                    "Whoever comes gets a free slot: 0.9 s to an answer.",
                ),
            ),
            "c",
        ),
    ),
    setting="It was Static(max_num_seqs=32). A dynamic batcher would help by night, but not by day.",
)

QUIZ = (
    Question(
        "why",
        "Why does continuous batching beat static batching at saturation?",
        (
            (
                "In a static batch the GPU idles.",
                "It never idles: it computes padding, and every dashboard shows it busy.",
            ),
            (
                "It refills a slot when an answer ends.",
                "So no slot-step is padding.",
            ),
            ("Its batches may have more slots.", "max_num_seqs bounds both alike."),
        ),
        "b",
    ),
    Question(
        "size",
        "Which batch size does continuous batching use?",
        (
            (
                "max_num_seqs, once it is warm",
                "That is the most it may hold. At light load a batch holds one or two requests.",
            ),
            ("that of the batcher in front", "The engine mixes requests by itself. A batcher only delays them."),
            ("none: each step decides anew", "Whoever is there gets in, as long as slots are free."),
        ),
        "c",
    ),
    Question(
        "equal",
        "When does static batching lose no tokens/s?",
        (
            ("with answers of equal length", "There is no padding."),
            ("by night, with slots to spare", "Each batch waits to be full, for a minute and more."),
            ("never: padding is always there", "Not with equal lengths."),
        ),
        "a",
    ),
    Question(
        "below",
        "At 3 requests/s both policies keep up. Which delivers more tokens/s?",
        (
            ("static, with its full batches", "Full batches count only while somebody always waits."),
            ("neither: they deliver what arrives", "Compare waiting times here."),
            (
                "continuous, about four times",
                "That is the gain at saturation. Nobody asks for more tokens here.",
            ),
        ),
        "b",
    ),
)

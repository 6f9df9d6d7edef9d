"""Lab 04, static, dynamic, continuous: the ticket of "Break it" and the quiz at the end."""

from course.exercises.spec import Question, Ticket

TICKET = Ticket(
    story='From the night shift: "With fifteen times the traffic, an answer takes 15 s in the evening. From 1 to 4 '
    "o'clock it takes 80 s, and the GPU is all but idle. Is the card broken?\"",
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                (
                    "The queue of the evening is still there.",
                    "Then the GPU would be busy. It is busy for 5% of the time.",
                ),
                (
                    "Each batch waits for its last slot.",
                    "At 0.2 requests/s it takes 155 s until 31 more have come.",
                ),
                (
                    "The GPU lowers its clock when idle.",
                    "A lower clock would make each step longer, and the GPU busy for more of the time.",
                ),
            ),
            "b",
        ),
        Question(
            "measure",
            "What do you measure next?",
            (
                (
                    "the wait from arrival to the first step",
                    "It is nine tenths of the time.",
                ),
                (
                    "the seconds of a step by night",
                    "A few milliseconds, by day and by night: that does not make a minute.",
                ),
                (
                    "the lengths of answers by night",
                    "They are the same. Longer answers would also make the GPU busier.",
                ),
            ),
            "a",
        ),
        Question(
            "repair",
            "What do you change?",
            (
                ("more slots, so that nobody queues", "A batch would wait for even more requests."),
                ("a second GPU beside this one", "Each of the two would then fill its batches half as fast."),
                ("continuous batching, same slots", "Whoever comes takes a free slot: 0.9 s by night."),
            ),
            "c",
        ),
    ),
    setting="It was Static(max_num_seqs=32). A dynamic batcher would help by night, not by day.",
)

QUIZ = (
    Question(
        "why",
        "Why does continuous batching beat static batching at saturation?",
        (
            (
                "In a static batch the GPU idles after short answers.",
                "It does not idle: it computes padding, and every dashboard shows it busy.",
            ),
            (
                "Its slots go to the next request when an answer ends.",
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
            ("max_num_seqs, once it is warm", "That is the most it may hold. At light load it holds one or two."),
            ("that of the batcher in front", "The engine mixes requests by itself. A batcher only delays them."),
            ("none: each step decides anew", "Whoever is there is in it."),
        ),
        "c",
    ),
    Question(
        "equal",
        "Where does static batching lose no tokens/s?",
        (
            ("with answers of equal length", "There is no padding."),
            ("by night, with slots to spare", "It waits for its batch to fill, for a minute and more."),
            ("nowhere: it never comes close", "With equal lengths there is nothing to gain."),
        ),
        "a",
    ),
    Question(
        "below",
        "At 3 requests/s static and continuous batching both keep up. Which delivers more?",
        (
            ("static, with its full batches", "That counts only where somebody always waits."),
            ("neither: they deliver what arrives", "Compare waiting times here."),
            (
                "continuous, about four times",
                "That is the gain at saturation. Nobody asks for more tokens here.",
            ),
        ),
        "b",
    ),
)

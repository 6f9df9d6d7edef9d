"""Lab 04, static, dynamic, continuous: the ticket of "Break it" and the quiz at the end."""

from course.exercises.spec import Question, Ticket

TICKET = Ticket(
    story='From the night shift: "The assistant is slowest when nobody uses it. In the evening, with fifteen times the '
    "traffic, an answer takes 15 s; between 1 and 4 o'clock it takes 80 s and more, and the GPU does next to nothing. "
    'Is the card broken?"',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                (
                    "The queue of the evening is still being worked off.",
                    "Then the GPU would be busy. It is busy for 5% of the time.",
                ),
                (
                    "Each batch waits until its last slot is taken.",
                    "At 0.2 requests/s it takes 155 s until 31 more have come.",
                ),
                (
                    "The GPU lowers its clock when it has little to do.",
                    "A lower clock would make each step longer, and the GPU busy for more of the time.",
                ),
            ),
            "b",
        ),
        Question(
            "measure",
            "Which measurement do you take next, to be sure?",
            (
                (
                    "the wait from arrival to the first step, by night",
                    "It is nine tenths of the time to an answer: requests wait for each other.",
                ),
                (
                    "the seconds that one step takes, by day and by night",
                    "A few milliseconds, by day and by night: that does not make a minute.",
                ),
                (
                    "the lengths of the answers, by day and by night",
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
                (
                    "continuous batching, with the same slots",
                    "Whoever comes takes a free slot: by night an answer then takes 0.9 s.",
                ),
            ),
            "c",
        ),
    ),
    setting="It was Static(max_num_seqs=32). A dynamic batcher with a short delay would help by night, not by day.",
)

QUIZ = (
    Question(
        "why",
        "Why does continuous batching beat static batching at saturation?",
        (
            (
                "The GPU idles in a static batch once short answers have ended.",
                "It does not idle: it computes padding, and every dashboard shows it busy.",
            ),
            (
                "It gives a slot to the next request as soon as an answer ends.",
                "No slot-step goes to padding, so the gain is as large as the padding was.",
            ),
            ("Its batches may have more slots than static ones.", "max_num_seqs bounds both alike."),
        ),
        "b",
    ),
    Question(
        "size",
        "A colleague asks which batch size your server with continuous batching uses. What do you answer?",
        (
            (
                "max_num_seqs, once the server is warm",
                "That is the most it may hold. At light load it holds one or two.",
            ),
            (
                "the one of the batcher in front of it",
                "The engine mixes requests by itself. A batcher only delays them.",
            ),
            ("none: each step decides anew", "Up to max_num_seqs, it holds whoever is there."),
        ),
        "c",
    ),
    Question(
        "equal",
        "For which work does static batching lose no tokens/s?",
        (
            (
                "a file of prompts of one length, each answered with 10 tokens",
                "Equal lengths leave no padding, and nobody waits for a batch to fill.",
            ),
            (
                "a chat by night, when most of the slots are free",
                "It waits for its batch to fill, for a minute and more.",
            ),
            ("none: continuous batching delivers more everywhere", "With equal lengths there is nothing to gain."),
        ),
        "a",
    ),
    Question(
        "below",
        "At 3 requests/s static and continuous batching both keep up. Which of them delivers more tokens/s?",
        (
            (
                "static, since its batches are full",
                "Full batches are worth something only where somebody always waits.",
            ),
            (
                "neither, both deliver what arrives",
                "Compare how long people wait, or compare tokens/s at saturation.",
            ),
            (
                "continuous, about four times as many",
                "That is the gain at saturation. Nobody asks for more tokens here.",
            ),
        ),
        "b",
    ),
)

"""Lab 02, the memory wall: questions from earlier labs, the ticket of "Break it", and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "shared-weights",
        "On an H100 sixteen answers together take hardly longer than one. Why?",
        (
            ("A GPU has a unit for each.", "One answer alone already uses all of them, for a moment."),
            ("Their steps take turns.", "Then sixteen would take sixteen times as long."),
            ("They share a read of weights.", "It takes most of a step, for one as for sixteen."),
        ),
        "c",
        lab="00",
    ),
    Question(
        "last_token",
        "TTFT is 0.4 s, TPOT 5 ms. When does token 101 come?",
        (
            ("after 0.505 s", "That is 101 gaps, and without the time to the first token."),
            ("after 0.9 s", "0.4 s, and 100 gaps of 5 ms."),
            ("after 0.905 s", "There is no gap before the first token."),
        ),
        "b",
        lab="01",
    ),
)

TICKET = Ticket(
    story='From a customer: "You moved us to new cards with more TFLOP/s. Long prompts come a little sooner. But '
    "then text runs at less than half its old speed. Your dashboard says GPU utilisation 100%, as before. Are they "
    'broken?"',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                ("They run at a lower clock.", "Then long prompts would take longer too."),
                ("They read memory more slowly.", "A decode step mostly reads; a prompt mostly multiplies."),
                ("More requests share a step.", "TPOT is longer at any number of requests."),
            ),
            "b",
        ),
        Question(
            "measure",
            "What do you measure next?",
            (
                ("the GB/s of a read probe", "It shows about 0.4 of the old card's."),
                ("the TFLOP/s of a product", "That is what became better."),
                ("the GPU utilisation", "It says that some kernel runs, not what it waits for."),
            ),
            "a",
        ),
        Question(
            "repair",
            "The cards stay. What brings TPOT down?",
            (
                ("a larger batch", "Each token costs less, and comes no sooner."),
                ("shorter prompts", "They change TTFT, and TPOT a little."),
                ("weights in 8 bits", "Half as much to read: 11 ms instead of 21 ms with 8 requests."),
            ),
            "c",
        ),
    ),
    setting="An A100 reads 2.04 TB/s and multiplies 312 TFLOP/s; the L40S that replaced it 0.86 and 362.",
)

QUIZ = (
    Question(
        "busy",
        "One sequence decodes, and the GPU utilisation is 100%. What does that say?",
        (
            ("that a kernel always runs", "It reaches 0.4% of the FLOP/s."),
            ("that all units multiply", "They wait for weights nearly all of the time."),
            ("that more would queue", "Another sequence lengthens the step by 1%."),
        ),
        "a",
    ),
    Question(
        "eight_bits",
        "Weights are stored in 8 bits and multiplied in 16. What becomes shorter?",
        (
            ("the prefill of long prompts", "It multiplies as much, at the same rate."),
            ("decode steps of few sequences", "They read half as many bytes of weights."),
            ("the time for K and V", "K and V are stored as before."),
        ),
        "b",
    ),
    Question(
        "longer",
        "Contexts grow from 1,024 to 4,096 tokens. What happens to the knee?",
        (
            ("It stays: weights are the same.", "Each sequence brings four times the K and V."),
            ("It moves to a larger batch.", "Each sequence adds more time, not less."),
            ("It moves to a smaller batch.", "From 81 to 26 in the recording."),
        ),
        "c",
    ),
    Question(
        "points",
        "You may measure six batches, to choose one of up to 256. Which?",
        (
            ("1 to 256, each some times the last", "They show t0, the knee, and what comes after."),
            ("1 to 32, which take little time", "Their curve says 44 ms at 256. It takes 19 ms."),
            ("six around the expected knee", "They show neither t0 nor what comes after."),
        ),
        "a",
    ),
)

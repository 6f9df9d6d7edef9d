"""Who arrives, when, and with how many tokens.

    from course import Workload, arrivals, lengths

`Workload` is the table of requests and has a constructor for each way to make one. `lengths` are the distributions of
prompt and output tokens, `arrivals` the times; `conversations` come back for another turn, `transforms` cut, scale and
merge, `guesses` are what a predictor says of the answers, `slo` what was promised, `columns` checks what a table
may hold.
"""

from course.workload.slo import SLO
from course.workload.workload import Workload

__all__ = ["SLO", "Workload"]

"""What theory says about a queue, in closed form, with the limits of each formula.

| function | queue | fits |
|---|---|---|
| `mm1`, `md1`, `mg1` | one server | one slot: `max_num_seqs=1` |
| `mmc`, `erlang_c` | c independent servers | constant, short steps; geometric lengths |
| `stepped_servers` | c servers that only start together | constant steps of any length; geometric lengths |
| `processor_sharing`, `continuous_batching` | one server that speeds up as it fills | `policies.Continuous` |
| `bulk_service` | batches of all who wait | `policies.Dynamic`, no delay, equal lengths |
| `static_batching` | full batches only | `policies.Static` (bounds) |
| `exponential_gain`, `lognormal_gain`, ... | a queue that never empties | continuous over static, at most |
| `continuous_capacity`, `static_capacity` | a queue that never empties | capacity by hand, from `demand` |

Times are seconds, rates are requests per second, lengths are tokens. A load of 1 and above is refused with a
ValueError: the queue then grows without end, and no mean exists.
"""

from course.queueing.capacity import (
    Capacity,
    Demand,
    continuous_capacity,
    demand,
    demand_of,
    service_rates,
    static_capacity,
)
from course.queueing.embedded import BulkMeans, bulk_service, stepped_servers
from course.queueing.gain import (
    GainBound,
    StaticBatching,
    empirical_gain,
    exponential_gain,
    fixed_gain,
    lognormal_gain,
    static_batching,
)
from course.queueing.many import MMc, erlang_c, mmc
from course.queueing.sharing import BatchingForecast, Sharing, continuous_batching, processor_sharing
from course.queueing.single import MD1, MM1, QueueMeans, md1, mg1, mm1

__all__ = [
    "MD1",
    "MM1",
    "BatchingForecast",
    "BulkMeans",
    "Capacity",
    "Demand",
    "GainBound",
    "MMc",
    "QueueMeans",
    "Sharing",
    "StaticBatching",
    "bulk_service",
    "continuous_batching",
    "continuous_capacity",
    "demand",
    "demand_of",
    "empirical_gain",
    "erlang_c",
    "exponential_gain",
    "fixed_gain",
    "lognormal_gain",
    "md1",
    "mg1",
    "mm1",
    "mmc",
    "processor_sharing",
    "service_rates",
    "static_batching",
    "static_capacity",
    "stepped_servers",
]

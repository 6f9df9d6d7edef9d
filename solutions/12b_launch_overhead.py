# %% [markdown]
# # Lab 12, deeper: Launch overhead

# %%
from course.lessons import lab12

# %% [markdown]
# ## The question
#
# Lab 12 showed timelines. **Which tool draws them, what do its counters mean, and what of a checklist is left to do?** This
# notebook is optional; nothing in it is asked elsewhere.
#
# ## A timeline
#
# | tool | what it is for | how |
# |---|---|---|
# | Nsight Systems | the timeline: calls of the program, kernels, copies, ranges of your own | `nsys profile --trace=cuda,nvtx -o step python serve.py`, then `nsys stats step.nsys-rep` |
# | Nsight Compute | one kernel, its counters | `ncu --kernel-name regex:skinny_gemm --launch-count 5 --metrics ... python serve.py` |
# | PyTorch Profiler | both lanes, from inside the program, of CuPy's launches too | `torch.profiler.profile(activities=[CPU, CUDA])`, then `export_chrome_trace` |
# | rocprof (`rocprofv3`) | AMD: timeline and counters | `rocprofv3 --kernel-trace --hip-trace -- python serve.py` |
# | Omnitrace (ROCm Systems Profiler) | AMD: threads of the program beside kernels | `rocprof-sys-run -- python serve.py` |
# | Grafana | days, not microseconds | what the engine exports: step time, running, waiting; it shows no gap between kernels |
#
# Nsight Systems was not on the machine that was lent, and no AMD card was: neither has an output here. The timelines of
# lab 12 are PyTorch's profiler's.
#
# **NVTX** ranges give a stretch of the program a name (`torch.cuda.nvtx.range_push("plan")`, `cupy.cuda.nvtx.RangePush`), which
# Nsight Systems draws as a lane of its own. Name the parts of a step first: plan, inputs, start, tokens.
#
# In the timeline, look for three things. Gaps between kernels that are as long as a call: launches. One long gap behind each step: the
# plan, or a copy that is waited for (`cudaStreamSynchronize`, `cudaMemcpy` without `Async`). Gaps that come and go: another thread has the core.
# So the thread that launches is given a core of its own (`taskset`, or the engine's own setting), and tokenizing and
# streaming go to other processes.

# %% [markdown]
# ## One real output
#
# Ten steps of our small model in bf16, launched one by one, on an H200, as PyTorch's profiler wrote them (columns left out):
#
# ```
#                       Name      Self CPU    CPU time avg     Self CUDA    CUDA time avg    # of Calls
#                skinny_gemm       0.000us         0.000us     564.768us          2.259us           250
#           decode_attention       0.000us         0.000us     287.619us          4.794us            60
#                     gather       0.000us         0.000us      10.239us          1.024us            10
#           cuLaunchKernelEx       2.434ms        19.622us       0.000us          0.000us           320
# ```
#
# `320` calls are {{fused_kernels}} kernels a step, which take `86 µs` together. A call takes `2.434 ms / 320 = 7.6 µs` under the profiler; the
# average of `19.6` has one call in it that waited for the profiler's own memory.
#
# And one of its kernels, as Nsight Compute wrote it (`--clock-control none`):
#
# ```
#   skinny_gemm (16, 1, 1)x(256, 1, 1), Context 1, Stream 17, Device 0, CC 9.0
#     dram__throughput.avg.pct_of_peak_sustained_elapsed                        %         0.86
#     gpu__time_duration.sum                                                   us         3.52
#     launch__grid_size                                                                     16
#     launch__occupancy_limit_registers                                     block            2
#     launch__occupancy_limit_shared_mem                                    block            5
#     launch__registers_per_thread                                register/thread           96
#     launch__waves_per_multiprocessor                                                    0.06
#     lts__throughput.avg.pct_of_peak_sustained_elapsed                         %         2.03
#     sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active               %         3.57
#     sm__throughput.avg.pct_of_peak_sustained_elapsed                          %         0.53
#     sm__warps_active.avg.pct_of_peak_sustained_active                         %        10.29
# ```
#
# | counter | what it means | here |
# |---|---|---|
# | `gpu__time_duration.sum` | how long the kernel ran, alone and with cold caches | `3.5 µs`: a launch takes longer |
# | `launch__grid_size`, `launch__waves_per_multiprocessor` | thread blocks, and how often they fill the card | `16` of `132` multiprocessors have one |
# | `launch__occupancy_limit_registers`, `..._shared_mem` | blocks that fit on a multiprocessor, by what each needs | `2`: registers |
# | `sm__warps_active...sustained_active` | warps there, of the `64` that fit; more hide more latency | `10%`; "at least `40%`" is a rule for large grids |
# | `sm__throughput`, `sm__pipe_fma_cycles_active` | how near to the most a multiprocessor can do | under `4%`: nothing is computed to speak of |
# | `dram__throughput` | memory, of the most | `1%`: the weights are in the second cache |
# | `lts__throughput` | the second cache (L2), of the most | `2%` |
#
# No counter is near its most. **Such a kernel is bound by its own latency, and a step of such kernels by what lies between them.**
#
# | AMD | what it means |
# |---|---|
# | `GRBM_GUI_ACTIVE` over `GRBM_COUNT` | cycles in which the card was busy with anything: as coarse as GPU-Util |
# | `SQ_WAVES` | wavefronts that were started |
# | `VALUUtilization` | lanes at work, of those in the wavefronts that ran; not how busy the units are (`VALUBusy`) |
# | `L2CacheHit`, `MemUnitBusy` | reads that the second cache answered; cycles in which the memory unit was busy |

# %% [markdown]
# ## A checklist, row by row
#
# | row | where |
# |---|---|
# | gaps on the timeline | lab 12, "A step of sixteen kernels" |
# | graphs at small batch | lab 12, exercise 2 and exercise 3 |
# | persistent kernel | lab 12, second prediction; `lm.load(device="cuda", form="persistent")` |
# | graphs for prompts | lab 12, Explain and the quiz |
# | pinned and double-buffered copies | below, and the quiz |
# | tokens chosen on the card | lab 12, the quiz |
# | a core for the thread that launches | above, and the ticket |
# | NVTX ranges | above |
# | merges prepared before, copies within a card | the tokenizer's merges are a table made once: lab 01. A copy within a card (D2D) is a kernel like others; a cache in blocks needs none: lab 09 |
# | fused queries, keys, values and RoPE | `kernels/skinny_gemm.cu`: {{fused_kernels}} kernels a step in place of {{library_kernels}} |
# | gaps below `2 ms` between steps | a loose rule: that is half of a step of the 8B, and twenty steps of our model |

# %% [markdown]
# ## What it costs, by size
#
# From the end of a kernel to the end of the next. With small kernels a graph with dependent launch is ahead of the persistent kernel by
# a tenth of a microsecond, with large ones behind by as little per cent.

# %%
lab12.every_size()

# %% [markdown]
# ## Our model
#
# Each form gives the same words.

# %%
lab12.forms_of_our_model()

# %% [markdown]
# ## Tokens

# %%
lab12.where_tokens_are_chosen()

# %% [markdown]
# The program's choice waits for a copy of {{vocabulary:,}} logits a sequence; a vocabulary of {{large_vocabulary:,}} makes it {{vocabularies:.0f}} times as long.
#
# ## Copies

# %%
lab12.copies()

# %% [markdown]
# From pageable memory the driver copies through a buffer of its own, and the call returns when that is done. From pinned
# memory the card reads by itself: the call returns, and the program must not write there before the copy has ended. Hence two buffers
# in turn. For the few kilobytes of a step's inputs it hardly matters.

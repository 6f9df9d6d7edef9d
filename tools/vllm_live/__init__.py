"""The course's model in the real vLLM: installed, started, asked, recorded. Development only; no part of the course.

`make vllm-live` does it all from nothing. The course's Python drives; vLLM is in a virtual environment of its own.
"""

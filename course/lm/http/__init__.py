"""The language model behind HTTP: the part of OpenAI's API that load generators speak, and metrics under vLLM's names.

`course serve` starts it. The packages that it needs come with the extra `serve`.
"""

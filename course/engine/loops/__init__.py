"""Three ways to run the serving loop; all return the same Log.

`stepwise` asks any policy before every step and checks its answer: the plain loop, and the slow one. `continuous` and
`batches` are what it comes to for the built-in policies, jumping over the steps in which nothing can change.
"""

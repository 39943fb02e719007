"""How far estimates are from the exact algorithm: bias, variance, staleness.

moments      means and variances over repeated passes, and what they say against a reference
passes       repeated passes of one minibatch at frozen weights and histories
monitor      a cheap measurement every few epochs of training
"""

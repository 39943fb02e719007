"""How far estimates are from the exact algorithm: bias, variance, staleness.

moments      means and variances over repeated passes, and what they say against a reference
passes       repeated passes of one minibatch at frozen weights and histories
monitor      a cheap measurement every few epochs of training
trajectory   one training run, and the histories of every estimator beside it
staleness    age and error of the histories that a minibatch reads
diagnosis    all estimators compared: `diagnose`
advice       what to change, by rules on the measured numbers
report       tables and pictures of a diagnosis
"""

"""Deviations of estimates from the exact algorithm: bias, variance, staleness.

    recorder     arguments and answers of each call of `propagate`
    trajectory   one training run, and the histories of every estimator beside it
    staleness    age and error of the histories of a minibatch, of activations and of gradients
    gradients    every estimator's gradient over minibatches, layer by layer
    diagnosis    all estimators compared: `diagnose`
    advice       what to change, by rules on the measured numbers

Repeated passes at frozen weights (`gradients`), their means and variances (`moments`) and the
measurements during training (`monitor`) are in `vrgcn.training`; tables and pictures of a diagnosis
are in `vrgcn.pages.diagnosis`.
"""

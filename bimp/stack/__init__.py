"""Several seeds or folds of one configuration trained side by side, as one network with stacked parameters.

Every parameter and buffer has a first dimension for the seeds, and the rows of all seeds' nodes (or edges, or graphs)
lie one part behind the other, each part as long as the longest. What has no parameter (aggregation, activations, the
gate's exponentials) works on all rows as it is; what has parameters maps each part by its seed's own. Gradients of
different seeds never meet, so that the results are those of separate runs but for the order of rounding.

:func:`bimp.stack.together.fit_together` takes the place of :func:`bimp.engine.fit`, and each seed's checkpoint is that
of :func:`~bimp.engine.fit`. Whether this is faster is measured in docs/performance.md.
"""

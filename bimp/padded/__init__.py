"""Training on padded batches in few operators: on a GPU a step of small graphs costs what its launches cost.

Functions with backward passes written out take the place of the plain ones (:func:`bimp.padded.choice.written_out`).
They keep two things true, which spare the masks: rows of padding nodes and edges stay what the embeddings made of them
from the first layer to the last, so that they are finite; and no gradient reaches them.
"""

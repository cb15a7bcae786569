"""Faster ways over a CPU core for what the layers are made of; each has a plain counterpart and equals it.

Where a kernel pays is measured in docs/performance.md. None of them is compiled on the user's machine: they put the
operators of PyTorch together in another order, keep blocks of edges in the cache and recompute instead of storing.
"""

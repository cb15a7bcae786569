"""The commands of ``aggregate.py``: what each takes and shows. They load what they work with when they are called."""

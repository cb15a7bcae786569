"""The commands of ``run_study.py``: what each takes and shows. They load what they work with when they are called."""

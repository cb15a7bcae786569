"""Cells beside what they face: vanilla models, published numbers, layer by layer; and the tables of it."""

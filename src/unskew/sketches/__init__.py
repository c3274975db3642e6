"""Summaries of a stream in bounded memory, for kernels: one file each."""

"""Structured Streaming: routing that adapts from one micro-batch to the next, and aggregates of streams."""

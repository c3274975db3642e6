"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("unskew", deadline=None, max_examples=100)
settings.load_profile("unskew")

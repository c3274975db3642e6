"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("unskew", deadline=None, max_examples=40)
settings.load_profile("unskew")

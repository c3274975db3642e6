"""The errors that a user can cause. The command line shows them as one line, without a traceback."""


class InputError(ValueError):
    """A value that is not allowed: the message names it, the rule, and what is allowed."""


class InputTypeError(InputError, TypeError):
    """A value of a type that is not allowed."""

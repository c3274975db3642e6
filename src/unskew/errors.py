"""The errors that a user can cause. The command line shows them as one line, without a traceback."""


class InputError(ValueError):
    """A value that is not allowed: the message names it, the rule, and what is allowed.

    Examples
    --------
    >>> from unskew import InputError, make
    >>> try:
    ...     make("pkg", workers=0)
    ... except InputError as error:
    ...     print(error)
    workers: must be an integer from 1 to 2147483647, not 0
    """


class InputTypeError(InputError, TypeError):
    """A value of a type that is not allowed."""

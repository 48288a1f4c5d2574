"""Whole models by people who have not seen the list of faults, or the code that finds them: one
file each. A file defines

NAME      the fault that it has, one of FAULTS; None, if it is right
model()   makes it
CHECKUP   how it is tried, as arguments of `checkup`; may be left out

Commit new ones before the first run: `python -m tests.model.checking.whole.report strangers`.
"""

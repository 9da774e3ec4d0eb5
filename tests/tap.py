"""Test lines of a program in Python, for prove to read, as tap.h has them for C and tap.sh for the shell.

Run with python3 -B: nothing is written beside the sources.

SPDX-License-Identifier: Apache-2.0
"""
import time

WAIT_S = 60
count = 0


def ok(passed, name, seen=""):
    """One test line; when it fails, with what was seen instead."""
    global count
    count += 1
    print(f"{'ok' if passed else 'not ok'} {count} - {name}", flush=True)
    if not passed:
        print("#   seen: " + str(seen)[:3000].replace("\n", "\n#   "), flush=True)


def until(see, wanted):
    """Looks again until what is seen is wanted, or it takes too long; what was seen last."""
    end = time.monotonic() + WAIT_S
    while True:
        seen = see()
        if wanted(seen) or time.monotonic() > end:
            return seen
        time.sleep(0.05)


def done():
    """Closes the run."""
    print(f"1..{count}")

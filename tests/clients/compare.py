"""Compares what a client says with the files of a mount: compare.py ROOT [LEAST] <LINES

Each line is `file=value`. A file is named from the root of the mount; of a table, `file row column` is one field, and
of `name value` lines `file name` is a value. `file *` is the number of its rows, or of a directory's numbered entries.
`file 1/N` is the number in the file divided by N and rounded down. An error that reading gives is its name. Prints each
line that differs; nothing when all agree. Fewer lines than LEAST, or none, are a difference, too.

SPDX-License-Identifier: Apache-2.0
"""
import errno
import os
import re
import sys


def rows(text):
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def field(text, row, column):
    """One field of a table whose first line names the columns, or the value in a list of names."""
    head = text.splitlines()[0]
    for cells in rows(text):
        if cells[0] == row:
            if not column:
                return " ".join(cells[1:])
            return cells[head.lstrip("# ").split().index(column)]
    return "no such row"


def expected(root, key):
    path, *place = key.split(" ")
    path = os.path.join(root, path)
    if place == ["*"] and os.path.isdir(path):
        return str(sum(name.isdigit() for name in os.listdir(path)))
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        return errno.errorcode[error.errno]
    if not place:
        return text.removesuffix("\n")
    if place == ["*"]:
        return str(len(rows(text)))
    if part := re.fullmatch(r"1/(\d+)", place[0]):
        return str(int(text) // int(part[1]))
    return field(text, place[0], place[1] if len(place) > 1 else None)


def main():
    root, least = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = 0
    for line in sys.stdin.read().splitlines():
        key, equals, value = line.partition("=")
        if not equals:
            print(f"'{line}' is no file=value line")
            continue
        count += 1
        if (want := expected(root, key)) != value:
            print(f"{key}: {value} instead of {want}")
    if count < least:
        print(f"{count} values, and {least} were expected")


main()

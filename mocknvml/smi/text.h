/*
 * Text: what programs call themselves, fit to be shown.
 *
 * A program's name may be any bytes. What is printed is UTF-8 without control characters, so that XML can be
 * parsed and a table keeps its frame.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_TEXT_H
#define SMI_TEXT_H

#include <stddef.h>

/* Puts a '?' in the place of every byte that is no part of a character that can be shown. */
void text_make_printable(char *text);

/* How many characters printable text has, and what follows the first `count` of them. */
size_t text_columns(const char *text);
const char *text_after(const char *text, size_t count);

#endif

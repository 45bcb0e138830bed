"""Compiled parsing of plain edge lists: ids that are whole numbers, weights of few digits.

Whatever is not plain makes the block fail as a whole. The general reader then goes through it, and
it alone knows names, exponents out of the ordinary, and the sentences about what is wrong.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled

MOST_DIGITS = 15  # so that a mantissa is exact in float64
TEN = 10.0 ** np.arange(23)  # exact too, and so is one product or quotient of two such numbers
NEWLINE, SPACE, TAB, RETURN, COMMA = (ord(c) for c in "\n \t\r,")
HASH, PERCENT, DOT, PLUS, MINUS, ZERO, NINE = (ord(c) for c in "#%.+-09")
LOWER_E, UPPER_E = ord("e"), ord("E")


@compiled()
def _blank(byte: int) -> bool:
    return byte in (SPACE, TAB, RETURN)


@compiled()
def _id(data: np.ndarray, place: int) -> tuple[int, int]:
    """Return the whole number at ``place`` and where it ends; -1 if there is none."""
    begin, value = place, 0
    while place < len(data) and ZERO <= data[place] <= NINE:
        value = 10 * value + (data[place] - ZERO)
        place += 1
        if place - begin > 18:
            return -1, place
    if place == begin or (data[begin] == ZERO and place - begin > 1):
        return -1, place
    return value, place


@compiled()
def _number(data: np.ndarray, place: int) -> tuple[float, int]:
    """Return the number at ``place`` and where it ends, exactly; NaN where that takes more."""
    negative = place < len(data) and data[place] == MINUS
    if place < len(data) and (data[place] == MINUS or data[place] == PLUS):
        place += 1
    mantissa, digits, exponent, seen = 0, 0, 0, False
    fraction = False
    while place < len(data):
        byte = data[place]
        if byte == DOT and not fraction:
            fraction = True
        elif ZERO <= byte <= NINE:
            mantissa = 10 * mantissa + (byte - ZERO)
            digits += 1 if mantissa else 0
            exponent -= 1 if fraction else 0
            seen = True
        else:
            break
        if digits > MOST_DIGITS:
            return np.nan, place
        place += 1
    if not seen:
        return np.nan, place
    if place < len(data) and (data[place] == LOWER_E or data[place] == UPPER_E):
        place += 1
        sign = 1
        if place < len(data) and (data[place] == MINUS or data[place] == PLUS):
            sign = -1 if data[place] == MINUS else 1
            place += 1
        begin, power = place, 0
        while place < len(data) and ZERO <= data[place] <= NINE and place - begin < 4:
            power = 10 * power + (data[place] - ZERO)
            place += 1
        if place == begin:
            return np.nan, place
        exponent += sign * power
    if not -22 <= exponent <= 22:
        return np.nan, place
    value = float(mantissa)
    value = value * TEN[exponent] if exponent >= 0 else value / TEN[-exponent]
    return -value if negative else value, place


@compiled()
def parse_edges(
    data: np.ndarray,
    comma: bool,
    weighted: bool,
    ids: np.ndarray,
    weights: np.ndarray,
    lines: np.ndarray,
) -> int:
    """Write the edges of a block of lines; return how many there are, or -1 if it is not plain.

    ``lines`` gets the place of each edge's line in the block. The arrays must be long enough for a
    quarter of the block's bytes, since no edge is shorter than ``1 2`` and a line feed.
    """
    place, line, count, size = 0, 0, 0, len(data)
    while place < size:
        while place < size and _blank(data[place]):
            place += 1
        if place < size and data[place] != NEWLINE:
            if data[place] == HASH or data[place] == PERCENT:
                while place < size and data[place] != NEWLINE:
                    if (data[place] < SPACE and not _blank(data[place])) or data[place] > 126:
                        return -1
                    place += 1
            else:
                for field in range(3 if weighted else 2):
                    if field:
                        begin = place
                        while place < size and _blank(data[place]):
                            place += 1
                        if comma:
                            if place == size or data[place] != COMMA:
                                return -1
                            place += 1
                            while place < size and _blank(data[place]):
                                place += 1
                        elif place == begin:
                            return -1
                    if field < 2:
                        ids[count, field], place = _id(data, place)
                        if ids[count, field] < 0:
                            return -1
                    else:
                        weights[count], place = _number(data, place)
                        if np.isnan(weights[count]):
                            return -1
                while place < size and _blank(data[place]):
                    place += 1
                if place < size and data[place] != NEWLINE:
                    return -1
                lines[count] = line
                count += 1
        place += 1
        line += 1
    return count

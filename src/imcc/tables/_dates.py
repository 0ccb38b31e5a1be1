"""Dates as people write them, and as Arrow has them, as times in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np

from imcc.tables._columns import arrow, compute, has_zone, is_text

#: Name of the format of dates as in 2021-05-31, up to 2021-05-31T14:30:05.25+02:00.
ISO = "ISO 8601"
_ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
#: Date formats that are detected; day/month and month/day only if just one of them fits all values.
DATE_FORMATS = (
    ISO,
    *(
        day + time
        for day in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
        for time in ("", " %H:%M", " %H:%M:%S")
    ),
)
#: What all of these look like, also with a year of two digits.
DATE_SHAPE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d.*)?$"


def parse_date(text: str, layout: str) -> datetime | None:
    """Return the date of a text, in UTC if it has a time zone; None if it is none in this format.

    >>> parse_date("29.02.2024", "%d.%m.%Y"), parse_date("29.02.2023", "%d.%m.%Y")
    (datetime.datetime(2024, 2, 29, 0, 0), None)
    """
    try:
        if layout != ISO:
            moment = datetime.strptime(text, layout)
        elif _ISO_DATE.fullmatch(text):
            moment = datetime.fromisoformat(text)
        else:
            return None
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, re.error):
        return None


def is_date_format(layout: Any) -> bool:
    """Return whether dates can be written and read in a format.

    >>> is_date_format("%d.%m.%y"), is_date_format("%Q")
    (True, False)
    """
    if not isinstance(layout, str):
        return False
    example = datetime(2021, 5, 31, 14, 30, 5, tzinfo=UTC)
    return layout == ISO or parse_date(example.strftime(layout), layout) is not None


def to_times(values: Any, layout: str | None, zoned: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Return a date column as datetime64[s] in UTC, and what is wrong with it.

    Parameters
    ----------
    values : pyarrow array
    layout : str or None
        Format of text; None means ISO 8601.
    zoned : bool
        Whether the dates must have a time zone.

    Returns
    -------
    times : ndarray
        NaT if missing.
    wrong : ndarray of bool
        Which cells are not such dates.
    problem : str
        What is wrong with them.
    """
    pa, pc = arrow(), compute()
    present = np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=bool)
    other_zone = (
        "has no time zone, unlike the dates of the training table"
        if zoned
        else "has a time zone, unlike the dates of the training table"
    )
    if is_text(values):
        layout = layout or ISO
        texts = values.drop_null().unique()
        moments = [*(parse_date(text, layout) for text in texts.to_pylist()), None]
        codes = pc.fill_null(pc.index_in(values, value_set=texts), len(texts)).to_numpy()
        times = np.array([m and m.replace(tzinfo=None) for m in moments], "datetime64[s]")[codes]
        wrong = present & np.isnat(times)
        if wrong.any():
            return times, wrong, f"is not a date in the format {layout}"
        differs = np.array([m is not None and (m.tzinfo is not None) != zoned for m in moments])
        return times, differs[codes], other_zone
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        parsed = pc.cast(values, pa.timestamp("s"), safe=False)
        times = np.asarray(parsed.to_numpy(zero_copy_only=False)).astype("datetime64[s]")
        return times, present & (has_zone(values) != zoned), other_zone
    return np.full(len(values), "NaT", "datetime64[s]"), present, "is not a date"

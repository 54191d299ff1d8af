"""Charts as inline SVG, with a legend and the same numbers as a table. PURE.

Without scripts and without styles of their own, so that the content security policy has nothing to let through:
colours and sizes come from the style sheet `evaluation/charts.css`. Each function returns markup in which every text is
escaped. A value of None is unknown: it is a gap, never a zero.
"""

from evaluation.charts.bars import IntervalBar, histogram, interval_bars, stacked_bars
from evaluation.charts.figure import Caption, Markup
from evaluation.charts.lines import Series, line_chart

__all__ = ["Caption", "IntervalBar", "Markup", "Series", "histogram", "interval_bars", "line_chart", "stacked_bars"]
